package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/internal/admin"
)

// get asks once, over a connection of its own.
func (g *Gateway) get(url, token string) (status int, body []byte, err error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: Patience}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// token is the operator's, which the gateway keeps in its directory.
func (g *Gateway) token() string {
	b, err := os.ReadFile(filepath.Join(g.Dir, "admin-token"))
	if err != nil {
		g.tb.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Admin asks the admin plane and decodes its answer into v, unless that is nil.
func (g *Gateway) Admin(path string, v any) []byte {
	g.tb.Helper()
	status, body, err := g.get("http://"+g.AdminAddr+path, g.token())
	if err != nil || status != http.StatusOK {
		g.tb.Fatalf("GET %s: %d, %v, %s", path, status, err, body)
	}
	if v != nil {
		if err := json.Unmarshal(body, v); err != nil {
			g.tb.Fatalf("GET %s: %v in %s", path, err, body)
		}
	}
	return body
}

// Status is the operator's picture.
func (g *Gateway) Status() (s admin.Status) {
	g.tb.Helper()
	g.Admin("/admin/v1/status", &s)
	return s
}

// Ready is the status that /readyz answers, 0 if it does not.
func (g *Gateway) Ready() int {
	status, _, err := g.get("http://"+g.Addr+"/readyz", "")
	if err != nil {
		return 0
	}
	return status
}

// Metrics are the figures of /metrics, by name with labels.
func (g *Gateway) Metrics() map[string]float64 {
	g.tb.Helper()
	m := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(g.Admin("/metrics", nil)))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] = v
		}
	}
	return m
}

// Quiet waits until nothing is open and all that has ended is in the store. It
// fails the test if that does not come.
func (g *Gateway) Quiet() admin.Status {
	g.tb.Helper()
	deadline := time.Now().Add(Patience)
	for {
		s := g.Status()
		if s.Open == 0 && s.Journal.Open == 0 && s.Journal.LagEntries == 0 {
			return s
		}
		if time.Now().After(deadline) {
			g.tb.Fatalf("not quiet in time: %d open, %d expired, journal %+v", s.Open, s.Expired, s.Journal)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Run runs the command line against the gateway and returns its output. The error
// is its exit code's.
func (g *Gateway) Run(args ...string) (string, error) {
	cmd := exec.Command(Binary(g.tb), args...)
	cmd.Env = append(os.Environ(), "SLUICE_ADMIN=http://"+g.AdminAddr, "SLUICE_ADMIN_TOKEN="+g.token())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// RSS is the resident memory of the process in bytes, and the most that it was
// since ResetPeak.
func (g *Gateway) RSS() (now, peak int64) {
	g.tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.PID()))
	if err != nil {
		g.tb.Skipf("this system does not tell the memory of a process: %v", err)
	}
	read := func(field string) int64 {
		_, rest, _ := strings.Cut(string(b), field+":")
		var kb int64
		_, _ = fmt.Sscan(rest, &kb)
		return kb << 10
	}
	return read("VmRSS"), read("VmHWM")
}

// ResetPeak makes RSS forget the peak so far.
func (g *Gateway) ResetPeak() {
	g.tb.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.PID()), []byte("5"), 0); err != nil {
		g.tb.Skipf("this system does not tell the memory of a process: %v", err)
	}
}

// CPU is the processor time that the process has taken.
func (g *Gateway) CPU() time.Duration {
	g.tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.PID()))
	if err != nil {
		g.tb.Skipf("this system does not tell the processor time of a process: %v", err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100 // ticks of Linux, whatever the kernel's own clock
}
