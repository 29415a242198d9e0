package faults

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/store"
)

// roleVariable makes the test binary something else: the command itself, or a
// process that a test needs beside it.
const roleVariable = "SLUICE_FAULTS_ROLE"

// The roles. Arguments are those of the binary.
const (
	roleCommand  = "sluice"   // the command: its arguments
	roleLocker   = "locker"   // holds the write lock of the database PATH until its input ends
	roleAppender = "appender" // appends to the store PATH for ever and says what is committed
	roleMigrator = "migrator" // opens the store PATH
)

func play(role string) int {
	args := os.Args[1:]
	var err error
	switch role {
	case roleCommand:
		return cli.Run(context.Background(), cli.Env{Args: args, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.LookupEnv})
	case roleLocker:
		err = holdLock(args[0])
	case roleAppender:
		err = appendForEver(args[0])
	case roleMigrator:
		var db *store.DB
		if db, err = store.Open(context.Background(), "sqlite:"+args[0], store.Options{}); err == nil {
			err = db.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func holdLock(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	_, err = db.Exec("ROLLBACK")
	return err
}

// command makes a process of the test binary in a role.
func command(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// lock lets another process hold the write lock of the gateway's database. What
// it returns gives it back; it may be called twice.
func (g *gateway) lock() (unlock func()) {
	t := g.t
	t.Helper()
	cmd := command(roleLocker, filepath.Join(g.data, "sluice.db"))
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = g.log
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the lock was not taken: %q %v %s", line, err, g.log)
	}
	ended := false
	unlock = func() {
		if ended {
			return
		}
		ended = true
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process that held the lock: %v", err)
		}
	}
	t.Cleanup(unlock)
	return unlock
}

// process is the command in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// run starts the command; limits are words before it, such as a shell's ulimit.
func (g *gateway) run(limits string, args ...string) *process {
	t := g.t
	t.Helper()
	cmd := command(roleCommand, args...)
	if limits != "" {
		cmd.Args = append([]string{"sh", "-c", limits + ` && exec "$0" "$@"`, cmd.Path}, args...)
		cmd.Path = "/bin/sh"
	}
	for k, v := range g.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = g.log, g.log
	must(t, cmd.Start())
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its code is in ProcessState
	}()
	return p
}

var greeting = regexp.MustCompile(`data plane http://(\S+), admin API http://(\S+)`)

// spawn runs the gateway in a process of its own and waits until it is up.
func (g *gateway) spawn(limits string) {
	t := g.t
	t.Helper()
	from := len(g.log.String())
	g.proc = g.run(limits, "serve", "--config", g.file)
	eventually(t, "the gateway is up", func() bool {
		m := greeting.FindStringSubmatch(g.log.String()[from:])
		if m != nil {
			g.addr, g.adminAddr = m[1], m[2]
			return true
		}
		select {
		case <-g.proc.done:
			t.Fatalf("the gateway ended: %s", g.log.String()[from:])
		default:
		}
		return false
	})
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * patience):
		p.kill()
		p.t.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// said is what the gateway has said since a mark of len(g.log.String()).
func (g *gateway) said(from int, text string) bool {
	return strings.Contains(g.log.String()[from:], text)
}

// sum is a fingerprint of a file.
func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return sha256.Sum256(bytes.Clone(b))
}
