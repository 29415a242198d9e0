package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admin"
)

// held is a backend whose streams begin at once and end when they are let go.
type held struct {
	url string
	let chan struct{} // closed: all end
}

func serveHeld(t *testing.T) *held {
	t.Helper()
	h := &held{let: make(chan struct{})}
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}` + "\n\n"
	const usage = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}` + "\n\n"
	h.url = "http://" + serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, chunk, `"role":"assistant","content":"begun"`, "null")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-h.let:
			fmt.Fprintf(w, chunk, `"content":" ended"`, `"stop"`)
			_, _ = io.WriteString(w, usage+"data: [DONE]\n\n")
		case <-r.Context().Done():
		}
	}))
	return h
}

// openMany opens n streams, some at a time.
func (g *gateway) openMany(n int) []*stream {
	streams := make([]*stream, n)
	var wg sync.WaitGroup
	for from := range 16 {
		wg.Go(func() {
			for i := from; i < n; i += 16 {
				streams[i] = g.open(ask{tenant: []string{hard, soft}[i%2]})
			}
		})
	}
	wg.Wait()
	return streams
}

// SIGTERM takes 1,000 streams down without the loss of one: not ready and still
// open at first, then closed to new ones until the last has ended.
func TestFault_D1_DrainLosesNone(t *testing.T) {
	t.Parallel()
	n := size(t, "SLUICE_FAULTS_STREAMS", 1000)
	up := serveHeld(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: up.url}}, top: "lame_duck: 2s\ndrain: 60s"})
	g.spawn("")
	streams := g.openMany(n)
	g.proc.signal(syscall.SIGTERM)
	eventually(t, "it is not ready", func() bool { return g.ready() == 503 })
	late := g.open(ask{}) // a balancer has not noticed yet
	eventually(t, "its door is closed", func() bool {
		g.client.CloseIdleConnections()
		return g.ready() == 0
	})
	select {
	case <-g.proc.done:
		t.Fatal("it ended with streams running")
	default:
	}
	close(up.let)
	lost := 0
	for _, s := range append(streams, late) {
		if r := s.result(t); !r.whole() {
			if lost++; lost == 1 {
				t.Errorf("a stream ended %v", &r)
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d streams were lost", lost, n+1)
	}
	if code := g.proc.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.spawn("") // should the machine be so busy that the last entries were left to it
	g.quiet()
	b := g.books()
	for id, es := range b {
		if es[0].Outcome != sluice.Completed || es[0].Usage.Source != sluice.UsageReported {
			t.Errorf("%s is %v %q with %+v", id, es[0].Outcome, es[0].Reason, es[0].Usage)
		}
	}
	if len(b) != n+1 {
		t.Errorf("the ledger has %d requests, want %d", len(b), n+1)
	}
}

// A drain that takes too long, or is cut short by a second signal, tells every
// stream so and settles it.
func TestFault_D1_CutDrain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		top     string
		signals int
		within  time.Duration
	}{
		"at the end of the grace":   {"drain: 1s", 1, 20 * time.Second},
		"by a second signal":        {"lame_duck: 60s\ndrain: 60s", 2, 20 * time.Second},
		"by one in the lame duck's": {"lame_duck: 1s\ndrain: 60s", 2, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			up := serveHeld(t)
			defer close(up.let)
			g := prepare(t, layout{backends: []backend{{name: "a", url: up.url}}, top: c.top})
			g.spawn("")
			streams := g.openMany(20)
			began := time.Now()
			g.proc.signal(syscall.SIGTERM)
			eventually(t, "it is not ready", func() bool { s := g.ready(); return s == 503 || s == 0 })
			if c.signals > 1 {
				g.proc.signal(syscall.SIGTERM)
			}
			for _, s := range streams {
				if r := s.result(t); !r.cut(sluice.ShuttingDown) {
					t.Errorf("a stream ended %v", &r)
				}
			}
			if code := g.proc.exit(); code != 0 || time.Since(began) > c.within {
				t.Errorf("exit code %d after %v", code, time.Since(began))
			}
			g.spawn("") // which drains what the last one had no time for
			g.quiet()
			b := g.books()
			for id, es := range b {
				if e := es[0]; e.Outcome != sluice.Failed || e.Reason != sluice.ShuttingDown || e.Cost == 0 {
					t.Errorf("%s is %v %q at %v", id, e.Outcome, e.Reason, e.Cost)
				}
			}
			if len(b) != len(streams) {
				t.Errorf("the ledger has %d requests, want %d", len(b), len(streams))
			}
		})
	}
}

// SIGTERM while the store is locked: what it has not taken is synced in the
// journal, the exit is clean and in time, and the next start drains it.
func TestFault_D2_StopWhileTheStoreIsLocked(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
	g.spawn("")
	unlock := g.lock()
	for range 10 {
		if r := g.do(ask{tenant: hard}); !r.whole() {
			t.Fatalf("got %v", &r)
		}
	}
	began := time.Now()
	g.proc.signal(syscall.SIGTERM)
	if code := g.proc.exit(); code != 0 || time.Since(began) > 20*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(began))
	}
	unlock()
	g.spawn("")
	g.quiet()
	b := g.books()
	for id, es := range b {
		if es[0].Outcome != sluice.Completed {
			t.Errorf("%s is %v %q", id, es[0].Outcome, es[0].Reason)
		}
	}
	if len(b) != 10 {
		t.Errorf("the ledger has %d requests, want 10", len(b))
	}
}

// A configuration that is wrong changes nothing and disturbs nobody; it is told,
// and the next good one is in force.
func TestFault_V1_BadReload(t *testing.T) {
	t.Parallel()
	p := serve(t)
	l := layout{backends: []backend{{name: "a", url: p.url}, {name: "b", url: p.url, fallback: true}}}
	g := start(t, l)
	version := g.status().Config.Version
	b, err := os.ReadFile(g.file)
	must(t, err)
	good := string(b)
	for name, text := range map[string]string{
		"syntax":         good + "\npools: [",
		"unknown field":  good + "\nmodles: {}\n",
		"bad address":    strings.ReplaceAll(good, p.url, "htp:/nowhere"),
		"missing secret": strings.ReplaceAll(good, "HARD_KEY", "NO_SUCH_VARIABLE"),
		"fallback cycle": strings.ReplaceAll(good, "{pool: spare, allow_unevaluated: true}", "{pool: main, allow_unevaluated: true}"),
		"unknown pool":   strings.ReplaceAll(good, "pools: [main]", "pools: [mian]"),
		"file cut short": good[:len(good)/2],
		"empty":          "",
	} {
		must(t, os.WriteFile(g.file, []byte(text), 0o600))
		if g.app.Reload(t.Context()) == nil {
			t.Errorf("%s: the reload succeeded", name)
		}
		s := g.status()
		if s.Config.LastError == "" || s.Config.Version != version || s.State != "ready" || g.ready() != 200 {
			t.Errorf("%s: the status is %s with %+v", name, s.State, s.Config)
		}
		if r := g.do(ask{}); !r.whole() {
			t.Errorf("%s: a request after it got %v", name, &r)
		}
	}
	// A port is bound at the start: another one in the file is told, not taken.
	must(t, os.WriteFile(g.file, []byte(strings.Replace(good, "listen: 127.0.0.1:0", "listen: "+g.adminAddr, 1)), 0o600))
	var answer admin.Reloaded
	if status := g.operator(http.MethodPost, "/admin/v1/config/reload", &answer); status != 200 || !strings.Contains(strings.Join(answer.Warnings, " "), "restart to put in force: listen") {
		t.Errorf("a port in use: got %d %+v", status, answer)
	}
	if r := g.do(ask{}); !r.whole() {
		t.Errorf("got %v", &r)
	}
	must(t, os.Remove(g.file))
	if g.app.Reload(t.Context()) == nil {
		t.Error("a file that is gone was loaded")
	}
	g.configure(l)
	must(t, g.app.Reload(t.Context()))
	if s := g.status(); s.Config.LastError != "" {
		t.Errorf("the good one: %+v", s.Config)
	}
}

// Streams of a backend that a reload removes go to their end; no new one begins
// there.
func TestFault_V2_ReloadRemovesABackend(t *testing.T) {
	t.Parallel()
	up, p := serveHeld(t), serve(t)
	g := start(t, layout{backends: []backend{{name: "going", url: up.url}}})
	streams := g.openMany(20)
	g.configure(layout{backends: []backend{{name: "staying", url: p.url}}})
	must(t, g.app.Reload(t.Context()))
	for range 20 {
		if r := g.do(ask{}); !r.whole() || r.header.Get("Sluice-Backend") != "staying" {
			t.Fatalf("got %v from %q", &r, r.header.Get("Sluice-Backend"))
		}
	}
	shown := false
	for _, pool := range g.status().Pools {
		for _, b := range pool.Backends {
			shown = shown || b.Backend == "going" && b.Retired && b.Running == 20
		}
	}
	if !shown {
		t.Errorf("the status does not show what drains: %+v", g.status().Pools)
	}
	close(up.let)
	for _, s := range streams {
		if r := s.result(t); !r.whole() {
			t.Errorf("a stream ended %v", &r)
		}
	}
	eventually(t, "the backend is gone", func() bool {
		return !strings.Contains(fmt.Sprint(g.status().Pools), "going")
	})
	if b := g.books(); len(b) != 40 {
		t.Errorf("the ledger has %d requests, want 40", len(b))
	}
}

// A hundred reloads a second disturb no request and leave nothing behind.
func TestFault_V3_ReloadWithoutEnd(t *testing.T) {
	// Not in parallel: it counts the goroutines and files of this process.
	p := serve(t)
	one := layout{backends: []backend{{name: "a", url: p.url}, {name: "b", url: p.url}}}
	two := layout{backends: []backend{{name: "b", url: p.url}, {name: "c", url: p.url}}}
	const reloads = 300

	t.Run("in process", func(t *testing.T) {
		g := start(t, one)
		configured := [2]string{}
		for i, l := range []layout{one, two} {
			g.configure(l)
			b, err := os.ReadFile(g.file)
			must(t, err)
			configured[i] = string(b)
		}
		g.do(ask{})
		g.quiet()
		before, filesBefore := runtime.NumGoroutine(), descriptors("self")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if r := g.do(ask{tokens: 20}); !r.whole() {
						t.Errorf("a request between reloads got %v", &r)
						return
					}
				}
			})
		}
		began := time.Now()
		for i := range reloads {
			must(t, os.WriteFile(g.file, []byte(configured[i%2]), 0o600), g.app.Reload(t.Context()))
		}
		rate := reloads / time.Since(began).Seconds()
		cancel()
		wg.Wait()
		t.Logf("%.0f reloads a second", rate)
		g.quiet()
		eventually(t, "goroutines and descriptors are back", func() bool {
			g.client.CloseIdleConnections()
			return runtime.NumGoroutine() <= before+20 && descriptors("self") <= filesBefore+20
		})
	})
	t.Run("by signal", func(t *testing.T) {
		g := prepare(t, one)
		g.spawn("")
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range 100 {
			g.proc.signal(syscall.SIGHUP)
			<-tick.C
		}
		g.configure(two)
		g.proc.signal(syscall.SIGHUP)
		eventually(t, "the last configuration is in force", func() bool {
			s := fmt.Sprint(g.status().Pools)
			return strings.Contains(s, "{c healthy") && !strings.Contains(s, "{a healthy")
		})
		if r := g.do(ask{}); !r.whole() {
			t.Errorf("got %v", &r)
		}
		g.proc.signal(syscall.SIGTERM)
		if code := g.proc.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// descriptors counts the open files of a process, 0 where the system does not say.
func descriptors(pid string) int {
	list, _ := os.ReadDir("/proc/" + pid + "/fd")
	return len(list)
}

// When a process has few descriptors, clients wait to be let in; what runs goes
// on, backends are dialled and the operator is answered.
func TestFault_P13_FewDescriptors(t *testing.T) {
	t.Parallel()
	up := serveHeld(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: up.url}}})
	g.spawn("ulimit -n 256")
	const clients = 300
	results := make(chan got, clients)
	for range clients {
		go func() { results <- g.do(ask{}) }()
	}
	eventually(t, "as many run as may", func() bool { return g.status().Running >= 80 })
	for range 10 { // the operator is answered while clients wait
		if s := g.status(); s.State != "ready" || s.Running != 80 {
			t.Errorf("the status is %s with %d running", s.State, s.Running)
		}
	}
	close(up.let)
	for range clients {
		if r := <-results; !r.whole() {
			t.Fatalf("got %v", &r)
		}
	}
	g.quiet()
	g.proc.signal(syscall.SIGTERM)
	if code := g.proc.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if b := g.books(); len(b) != clients {
		t.Errorf("the ledger has %d requests, want %d", len(b), clients)
	}
}
