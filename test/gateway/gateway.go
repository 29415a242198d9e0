package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/auth"
)

// Patience bounds every wait for something that must happen.
const Patience = 30 * time.Second

// Options says what a Gateway is made of.
type Options struct {
	// Config is the text of its configuration file, without tenants.
	Config string
	// Tenants gives each tenant its plan, by name. Each has one key, of Key.
	Tenants map[string]string
	// Command replaces the binary: a program and its first arguments. It is
	// given those of `sluice serve`.
	Command []string
	Env     []string // beside the test's own
}

// Gateway is a gateway in a directory, running or not.
type Gateway struct {
	Dir  string // of the data: journal, database, tokens
	file string // configuration
	keys map[string]string
	o    Options
	tb   testing.TB

	Addr, AdminAddr string // host:port, of the running process

	cmd  *exec.Cmd
	done chan error // 1-buffered: how the process ended
	log  tail
}

// New makes a Gateway that does not run yet. At the end of the test it is killed
// if it still runs.
func New(tb testing.TB, o Options) *Gateway {
	tb.Helper()
	dir := tb.TempDir()
	g := &Gateway{tb: tb, o: o, Dir: filepath.Join(dir, "data"), file: filepath.Join(dir, "sluice.yaml"), keys: map[string]string{}}
	var text strings.Builder
	text.WriteString(o.Config)
	text.WriteString("\ntenants:\n")
	for name, plan := range o.Tenants {
		minted, err := auth.Mint("test")
		if err != nil {
			tb.Fatal(err)
		}
		g.keys[name] = minted.Key.Reveal()
		fmt.Fprintf(&text, "  %s: {plan: %s, keys: {main: {secret: \"${KEY_%s}\"}}}\n", name, plan, name)
	}
	if err := os.WriteFile(g.file, []byte(text.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		g.Kill()
		if tb.Failed() {
			tb.Logf("the gateway's log ends with:\n%s", g.log.String())
		}
	})
	return g
}

// As is the same gateway, in the same directory, run by another command: a program
// and its first arguments, which is given those of `sluice serve`. Of the two only
// one can run at a time.
func (g *Gateway) As(command []string, env ...string) *Gateway {
	other := &Gateway{tb: g.tb, o: g.o, Dir: g.Dir, file: g.file, keys: g.keys}
	other.o.Command, other.o.Env = command, append(env, g.o.Env...)
	g.tb.Cleanup(func() {
		other.Kill()
		if g.tb.Failed() {
			g.tb.Logf("the other gateway's log ends with:\n%s", other.log.String())
		}
	})
	return other
}

// Key is the credential of a tenant.
func (g *Gateway) Key(tenant string) string { return g.keys[tenant] }

// URL is the address of a path of the data plane.
func (g *Gateway) URL(path string) string { return "http://" + g.Addr + path }

// PID is the process id of the running process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Start starts a process and waits until it is ready. It returns how long that
// took, from the start of the process.
func (g *Gateway) Start(env ...string) time.Duration {
	g.tb.Helper()
	began := time.Now()
	if err := g.TryStart(env...); err != nil {
		g.tb.Fatal(err)
	}
	return time.Since(began)
}

var greeting = regexp.MustCompile(`data plane http://(\S+), admin API http://(\S+)`)

// TryStart is Start for a process that may end before it is ready, with an error
// that tells how. env is for this process alone.
func (g *Gateway) TryStart(env ...string) error {
	command := g.o.Command
	if command == nil {
		command = []string{Binary(g.tb), "serve"}
	}
	args := append(command[1:len(command):len(command)],
		"--config", g.file, "--data", g.Dir, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	cmd := exec.Command(command[0], args...)
	cmd.Env = append(os.Environ(), g.o.Env...)
	for name, key := range g.keys {
		cmd.Env = append(cmd.Env, "KEY_"+name+"="+key)
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = &g.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	g.cmd, g.done = cmd, make(chan error, 1)
	lines := bufio.NewReader(out)
	first, readErr := lines.ReadString('\n')
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, lines)
		g.done <- cmd.Wait()
	}()
	m := greeting.FindStringSubmatch(first)
	if readErr != nil || m == nil {
		g.Kill()
		return fmt.Errorf("the gateway did not start and said %q; its log: %s", first, g.log.String())
	}
	g.Addr, g.AdminAddr = m[1], m[2]
	return g.waitReady()
}

// waitReady waits until the gateway says that it is ready.
func (g *Gateway) waitReady() error {
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		status, _, err := g.get("http://"+g.Addr+"/readyz", "")
		if err == nil && status == 200 {
			return nil
		}
		select {
		case end := <-g.done:
			g.done <- end
			return fmt.Errorf("the gateway ended before it was ready: %w", errors.Join(end, err))
		case <-time.After(2 * time.Millisecond):
		}
	}
	return errors.New("the gateway was not ready in time")
}

// Running reports whether there is a process.
func (g *Gateway) Running() bool { return g.cmd != nil }

// Kill ends the process by SIGKILL, if it runs, and waits for its end.
func (g *Gateway) Kill() {
	if g.cmd == nil {
		return
	}
	_ = g.cmd.Process.Kill()
	<-g.done
	g.cmd = nil
}

// Crashed waits for a process that kills itself, and reports whether it did
// within a time. If not, it still runs.
func (g *Gateway) Crashed(within time.Duration) bool {
	g.tb.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case err := <-g.done:
		g.cmd = nil
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			g.tb.Fatalf("the gateway ended otherwise than by SIGKILL: %v", err)
		}
		return true
	case <-timer.C:
		return false
	}
}

// Signal sends a signal to the process.
func (g *Gateway) Signal(s os.Signal) {
	g.tb.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.tb.Fatal(err)
	}
}

// Wait waits for the end of a process that was told to end. The error is how it
// ended, nil for exit code 0.
func (g *Gateway) Wait(within time.Duration) error {
	g.tb.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case err := <-g.done:
		g.cmd = nil
		return err
	case <-timer.C:
		g.tb.Fatalf("the gateway did not end within %v", within)
		return nil
	}
}

// Stop ends the process by SIGTERM and wants exit code 0.
func (g *Gateway) Stop() {
	g.tb.Helper()
	g.Signal(syscall.SIGTERM)
	if err := g.Wait(2 * Patience); err != nil {
		g.tb.Fatalf("the gateway ended with %v", err)
	}
}

// tail keeps the end of a log.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if extra := len(l.b) - 8<<10; extra > 0 {
		l.b = append(l.b[:0], l.b[extra:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
