package gateway

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

// Main runs the tests of a package, wants no goroutine to outlive them, and removes
// what they built.
func Main(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// Binary is the path of `sluice`, built from this tree. It is not instrumented
// by the race detector, whatever the test is: what is measured is what ships.
func Binary(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "sluice-test-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(built.dir, "sluice"), "sluice/cmd/sluice").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build sluice: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return filepath.Join(built.dir, "sluice")
}
