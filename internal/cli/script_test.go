package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	shipped "sluice/test/gateway"
)

// TestMain wants no goroutine to outlive the tests.
func TestMain(m *testing.M) {
	shipped.Main(m)
}

// TestScripts runs the sessions of testdata/script, with the program as it ships: what
// is in these processes has its races found by the tests of app and live. Beside the
// usual commands they have:
//
//	start NAME CMD ARG…   run in the background until it says where it listens: $NAME is its
//	                      address, for a gateway $SLUICE_ADMIN too; output goes to NAME.log
//	signal NAME SIG       send HUP, TERM or KILL
//	await NAME TEXT       wait until NAME has said TEXT
//	ended NAME CODE       wait until NAME has ended and want its exit code
//	exits CODE CMD ARG…   run a command and want its exit code
//	http [-k KEY] [-d FILE] METHOD URL   one request: status line, headers and body on stdout
//	capture VAR REGEXP    $VAR is what the (first group of the) expression finds in stdout
func TestScripts(t *testing.T) {
	programs := filepath.Dir(shipped.Binary(t))
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Values[processes{}] = &sync.Map{}
			e.Setenv("NO_COLOR", "1")
			e.Setenv("PATH", programs+string(filepath.ListSeparator)+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "signal": sendSignal, "await": await, "ended": ended, "exits": exits, "http": request1, "capture": capture,
		},
	})
}

// processes is the key of a script's background processes.
type processes struct{}

// process is one of them. All that it has said is in log.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and said everything

	mu     sync.Mutex
	log    strings.Builder
	waiter map[string]chan struct{} // closed when the text has been said
}

// say notes a line and wakes those that wait for it.
func (p *process) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.WriteString(line + "\n")
	for text, ch := range p.waiter {
		if strings.Contains(line, text) {
			close(ch)
			delete(p.waiter, text)
		}
	}
}

// said is closed once a line with text has come.
func (p *process) said(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := make(chan struct{})
	if strings.Contains(p.log.String(), text) {
		close(ch)
		return ch
	}
	p.waiter[text] = ch
	return ch
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// patience bounds every wait of a script.
const patience = 20 * time.Second

func started(ts *testscript.TestScript, name string) *process {
	v, ok := ts.Value(processes{}).(*sync.Map).Load(name)
	if !ok {
		ts.Fatalf("nothing was started as %s", name)
	}
	return v.(*process)
}

var listening = regexp.MustCompile(`(?:data plane|listens on) (http://[^\s/,]+)(?:.*admin API (http://[^\s/,]+))?`)

func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME CMD ARG…")
	}
	path := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[1])
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "NO_COLOR", "ACME_KEY"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	p := &process{cmd: cmd, done: make(chan struct{}), waiter: map[string]chan struct{}{}}
	up := p.said("http://")
	ts.Check(cmd.Start())
	go func() {
		_ = cmd.Wait() // its code is in ProcessState
		in.Close()
	}()
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.say(lines.Text())
		}
	}()
	ts.Value(processes{}).(*sync.Map).Store(args[0], p)
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	select {
	case <-up:
	case <-p.done:
		ts.Fatalf("%s ended: %s", args[0], p.output())
	case <-time.After(patience):
		ts.Fatalf("%s does not come up: %s", args[0], p.output())
	}
	m := listening.FindStringSubmatch(p.output())
	if m == nil {
		ts.Fatalf("%s does not say where it listens: %s", args[0], p.output())
	}
	ts.Setenv(args[0], m[1])
	if m[2] != "" {
		ts.Setenv("SLUICE_ADMIN", m[2])
	}
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	sig, ok := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	if neg || !ok {
		ts.Fatalf("usage: signal NAME HUP|TERM|KILL")
	}
	ts.Check(started(ts, args[0]).cmd.Process.Signal(sig))
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME TEXT")
	}
	p := started(ts, args[0])
	select {
	case <-p.said(args[1]):
	case <-p.done:
		if !strings.Contains(p.output(), args[1]) {
			ts.Fatalf("%s ended without saying %q: %s", args[0], args[1], p.output())
		}
	case <-time.After(patience):
		ts.Fatalf("%s did not say %q: %s", args[0], args[1], p.output())
	}
}

func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE")
	}
	p := started(ts, args[0])
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("%s does not end: %s", args[0], p.output())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), []byte(p.output()), 0o600))
	if got := strconv.Itoa(p.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s: exit code %s, want %s: %s", args[0], got, args[1], p.output())
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD ARG…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func request1(ts *testscript.TestScript, neg bool, args []string) {
	key, body := "", io.Reader(nil)
	for len(args) > 2 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-k":
			key = args[1]
		case "-d":
			body = strings.NewReader(ts.ReadFile(args[1]))
		}
		args = args[2:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: http [-k KEY] [-d FILE] METHOD URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, args[0], args[1], body)
	ts.Check(err)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	fmt.Fprintf(ts.Stdout(), "status %d\n", res.StatusCode)
	ts.Check(res.Header.Write(ts.Stdout()))
	fmt.Fprintln(ts.Stdout())
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VAR REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("nothing in stdout is like %s", args[1])
	}
	ts.Setenv(args[0], strings.TrimSpace(m[len(m)-1]))
}
