package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The roles that this binary takes in other processes.
const (
	roleUpstream = "upstream"
	rolePlain    = "plain"
)

// process is one that this program has started.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer // whose end ends the process, nil if a signal does
	out  *bufio.Reader
}

// start starts a process whose first line of output is waited for by the caller.
func start(ctx context.Context, name string, cmd *exec.Cmd, byInput bool) (*process, error) {
	p := &process{name: name, cmd: cmd}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if byInput {
		if p.in, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// role starts this binary in another role and returns what it tells.
func role(ctx context.Context, name string, args ...string) (*process, []string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self, append([]string{name}, args...)...)
	cmd.Stderr = os.Stderr
	p, err := start(ctx, name, cmd, true)
	if err != nil {
		return nil, nil, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.stop()
		return nil, nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	return p, strings.Fields(line), nil
}

// stop ends the process, at once if it does not end by itself.
func (p *process) stop() {
	if p.in != nil {
		_ = p.in.Close()
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	kill := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	go func() { _, _ = io.Copy(io.Discard, p.out) }()
	_ = p.cmd.Wait()
}

// cpu is the processor time that the process has taken, user and system.
func (p *process) cpu() (time.Duration, error) {
	u, err := p.usage()
	return u.cpu, err
}

// usage is what the process has taken so far.
type usage struct {
	cpu time.Duration
	rss int64 // bytes
}

func (p *process) usage() (usage, error) {
	u, err := usageOfProc(p.cmd.Process.Pid)
	if errors.Is(err, os.ErrNotExist) {
		return usageOfPS(p.cmd.Process.Pid)
	}
	return u, err
}

// ticks is what Linux counts processor time in, whatever the kernel's own clock.
const ticks = time.Second / 100

func usageOfProc(pid int) (u usage, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name, in parentheses, may hold anything; what follows may not.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 22 {
		return u, fmt.Errorf("/proc/%d/stat is short", pid)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	pages, err3 := strconv.ParseInt(fields[21], 10, 64)
	return usage{time.Duration(user+system) * ticks, pages * int64(os.Getpagesize())}, errors.Join(err1, err2, err3)
}

// usageOfPS asks ps, where there is no /proc.
func usageOfPS(pid int) (u usage, err error) {
	text, err := exec.Command("ps", "-o", "time=,rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return u, fmt.Errorf("ps: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return u, fmt.Errorf("ps told %q", text)
	}
	for part := range strings.SplitSeq(fields[0], ":") { // hours:minutes:seconds.hundredths, hours if any
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return u, fmt.Errorf("ps told %q", text)
		}
		u.cpu = 60*u.cpu + time.Duration(v*float64(time.Second))
	}
	kb, err := strconv.ParseInt(fields[1], 10, 64)
	u.rss = kb << 10
	return u, err
}
