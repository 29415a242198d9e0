package crash

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sluice/internal/app"
	"sluice/test/gateway"
)

// What makes this test binary a gateway that ends itself.
const (
	roleVariable   = "SLUICE_CRASH_VICTIM"    // set: be one
	pointVariable  = "SLUICE_CRASH_FAILPOINT" // where it ends
	syncedVariable = "SLUICE_CRASH_SYNCED"    // file that it tells its fsyncs in
	slowVariable   = "SLUICE_CRASH_SLOW"      // how long each fsync takes more
)

// segmentBytes is the size of the victim's segments: some come and go in each of
// its lives.
const segmentBytes = 16 << 10

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		if err := victim(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	gateway.Main(m)
}

// armSignal lets the victim's failpoint count.
const armSignal = syscall.SIGUSR1

// victim is `sluice serve` on a disk that ends the process.
func victim(args []string) error {
	o := app.Options{Stdout: os.Stdout, Stderr: os.Stderr}
	flags := flag.NewFlagSet("victim", flag.ContinueOnError)
	flags.StringVar(&o.ConfigPath, "config", "", "")
	flags.StringVar(&o.Data, "data", "", "")
	flags.StringVar(&o.Listen, "listen", "", "")
	flags.StringVar(&o.AdminListen, "admin-listen", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	point, err := parseFailpoint(os.Getenv(pointVariable))
	if err != nil {
		return err
	}
	d := &disk{point: point}
	if slow := os.Getenv(slowVariable); slow != "" {
		if d.slow, err = time.ParseDuration(slow); err != nil {
			return err
		}
	}
	if path := os.Getenv(syncedVariable); path != "" {
		if d.told, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return err
		}
	}
	o.OpenFile, o.SegmentBytes = d.open, segmentBytes
	arm := make(chan os.Signal, 1)
	signal.Notify(arm, armSignal)
	go func() {
		<-arm
		d.armed.Store(true)
	}()
	return app.Run(context.Background(), o)
}

// size is how large a test is, from the environment.
func size(tb testing.TB, name string, otherwise int) int {
	tb.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		tb.Fatalf("%s is %q: write a whole number from 1", name, v)
	}
	return n
}
