package scale

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/replay"
	"sluice/test/gateway"
)

// TestSoak runs mixed traffic with faults for as long as SOAK says, tells every
// minute what the gateway's process takes, and wants all of it back at the end,
// and a ledger that is what was served.
func TestSoak(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		if os.Getenv("SOAK") != "" {
			t.Fatalf("SOAK: %v", err)
		}
		t.Skip("SOAK says how long, such as 1h: see docs/proof.md")
	}
	fleet, url := scripted(t, fakellm.Options{Speed: 3, Seed: 7, Book: 1 << 22})
	faults(fleet)
	g := gateway.New(t, gateway.Options{Config: soakConfiguration(url), Tenants: map[string]string{plain: plain, hourly: hourly, hardly: hardly}})
	g.Start()
	s := &soak{t: t, g: g, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second}}}
	short, cancel := context.WithTimeout(t.Context(), min(span/20, 20*time.Second))
	s.traffic(short) // what is made once is made
	cancel()
	g.Quiet()
	s.client.CloseIdleConnections()
	base := s.picture("base")

	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.traffic(ctx)
	}()
	var quarter picture
	tick := time.NewTicker(min(time.Minute, span/4))
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-tick.C:
			p := s.picture(fmt.Sprint(time.Since(began).Round(time.Second)))
			if quarter.heap == 0 && time.Since(began) >= span/4 {
				quarter = p
			}
			continue
		case <-done:
		}
		break
	}
	s.end(base, quarter)
	s.books(fleet)
	g.Stop()
}

const hardly = "hardly" // hard spend, synced before the dial

func soakConfiguration(url string) string {
	return fmt.Sprintf(`
lame_duck: 0s
log: {level: error}
providers:
  engines: {dialect: openai, engine: vllm, base_url: "%[1]s/v1", price: {input: $0.10, output: $0.40}, timeouts: {first_token: 20s, idle: 5s}}
  other: {dialect: anthropic, base_url: "%[1]s/v1", stops_on_cancel: true, price: {input: $0.10, output: $0.40}, timeouts: {first_token: 20s, idle: 5s}}
pools:
  first:
    backends:
      - {name: a, provider: engines, model: sim-small, context: 128k, max_output: 8k, capacity: {concurrency: 64}}
      - {name: b, provider: engines, model: sim-large, context: 128k, max_output: 8k, capacity: {concurrency: 64}}
  second:
    backends: [{name: c, provider: engines, model: spare, context: 128k, max_output: 8k, capacity: {concurrency: 64}}]
  third:
    backends: [{name: d, provider: other, model: claude-like, context: 128k, max_output: 8k, capacity: {concurrency: 64}}]
models:
  fast: {pools: [first], fallback: [{pool: second, allow_unevaluated: true}]}
  claude: {pools: [third]}
plans:
  plain: {class: interactive, spend: soft, limits: {spend_per_month: $1000000, requests_per_day: 100M, concurrency: 128}}
  hardly: {class: standard, spend: hard, limits: {spend_per_month: $1000000, requests_per_day: 100M}}
  hourly: {class: batch, spend: soft, limits: {requests_per_hour: 1000}}
`, url)
}

// faults is what the provider does to a share of the requests.
func faults(fleet *fakellm.Server) {
	for _, model := range []string{"sim-small", "sim-large", "claude-like"} {
		var rules []fakellm.Rule
		for _, f := range []string{
			"status=503", "429=1", "status=400", "reset", "die-after=3", "truncate=4", "error-event=2", "error-first", "malformed=2",
			"no-done", "usage=none", "usage=huge", "byte-by-byte", "crlf", "comments", "gzip", "stall-after=5", "hang-headers", "first=3s", "pause=3:1s", "early",
		} {
			rules = append(rules, fakellm.Rule{Fault: f, Probability: .006})
		}
		fleet.Play(model, rules...)
	}
}

// soak is the traffic and its count.
type soak struct {
	t      *testing.T
	g      *gateway.Gateway
	client *http.Client

	sent, whole, refused, given, broken atomic.Int64
}

// traffic keeps 48 clients busy until ctx ends, asks what operators ask, and
// reloads the configuration now and then.
func (s *soak) traffic(ctx context.Context) {
	var wg sync.WaitGroup
	for w := range 48 {
		rnd := rand.New(rand.NewPCG(uint64(w), 48))
		wg.Go(func() {
			for ctx.Err() == nil {
				s.one(ctx, rnd)
				pause := time.NewTimer(time.Duration(rnd.IntN(300)) * time.Millisecond)
				select {
				case <-pause.C:
				case <-ctx.Done():
					pause.Stop()
				}
			}
		})
	}
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for i := 1; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			s.g.Admin("/admin/v1/usage?by=tenant,model", nil)
			s.g.Admin("/admin/v1/requests?limit=50", nil)
			if i%6 == 0 {
				s.g.Signal(syscall.SIGHUP)
			}
		}
	})
	wg.Wait()
}

// one sends one request of the mix. Its end is not this ctx's: what runs when the
// traffic ends comes to its own end.
func (s *soak) one(ctx context.Context, rnd *rand.Rand) {
	tenant := []string{plain, plain, hardly, hourly}[rnd.IntN(4)]
	path, body := s.request(rnd)
	one, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	slow := rnd.IntN(40) == 0
	if rnd.IntN(8) == 0 { // gives up
		time.AfterFunc(time.Duration(rnd.IntN(1500))*time.Millisecond, cancel)
	}
	r, err := http.NewRequestWithContext(one, http.MethodPost, s.g.URL(path), strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	key := s.g.Key(tenant)
	if rnd.IntN(100) == 0 {
		key = "slk_test_nobody"
	}
	r.Header.Set("Authorization", "Bearer "+key)
	s.sent.Add(1)
	resp, err := s.client.Do(r)
	if err == nil {
		defer resp.Body.Close()
		err = s.read(resp.Body, slow)
	}
	switch {
	case one.Err() != nil:
		s.given.Add(1)
	case err != nil:
		s.broken.Add(1)
	case resp.StatusCode != http.StatusOK:
		s.refused.Add(1)
	default:
		s.whole.Add(1)
	}
}

func (s *soak) read(body io.Reader, slow bool) error {
	if !slow {
		_, err := io.Copy(io.Discard, body)
		return err
	}
	b := make([]byte, 256)
	for {
		_, err := body.Read(b)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// request makes a request of the mix.
func (s *soak) request(rnd *rand.Rand) (path, body string) {
	tokens, words, stream := 1+rnd.IntN(250), rnd.IntN(3000), rnd.IntN(4) > 0
	switch n := rnd.IntN(500); {
	case n == 0:
		words = 300_000
	case n < 10:
		words = 80_000
	case n < 20:
		tokens = 1500
	}
	user := fmt.Sprintf("u-%d", rnd.IntN(2000))
	prompt := prose(words) + fmt.Sprintf("[[tokens=%d]]", tokens)
	switch rnd.IntN(8) {
	case 0:
		return "/v1/embeddings", fmt.Sprintf(`{"model":"fast","user":%q,"input":%q}`, user, prompt)
	case 1:
		return "/v1/messages/count_tokens", fmt.Sprintf(`{"model":"claude","messages":[{"role":"user","content":%q}]}`, prompt)
	case 2, 3:
		return "/v1/messages", fmt.Sprintf(`{"model":"claude","max_tokens":2000,"stream":%t,"metadata":{"user_id":%q},"messages":[{"role":"user","content":%q}]}`, stream, user, prompt)
	}
	return "/v1/chat/completions", fmt.Sprintf(`{"model":"fast","max_tokens":2000,"stream":%t,"user":%q,"messages":[{"role":"user","content":%q}]}`, stream, user, prompt)
}

// picture tells what the process takes.
func (s *soak) picture(when string) picture {
	p, journal, open := measure(s.g), s.g.Status().Journal, s.g.Status().Open
	var database int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(s.g.Dir, "sluice.db"+suffix)); err == nil {
			database += info.Size()
		}
	}
	p.journal, p.requests = journal.Bytes, s.sent.Load()
	s.t.Logf("%8s: %8d requests (%d whole, %d refused, %d given up, %d broken), %3d open; heap %5.1f MB, resident %5.1f MB, %4d goroutines, %4d descriptors, journal %5.1f MB, %d behind, database %.1f MB",
		when, p.requests, s.whole.Load(), s.refused.Load(), s.given.Load(), s.broken.Load(), open,
		mb(p.heap), mb(p.rss), p.goroutines, p.descriptors, mb(p.journal), journal.LagEntries, mb(database))
	return p
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }

// The margins of what must return.
const (
	moreGoroutines  = 10
	moreDescriptors = 10
	moreHeap        = 16 << 20 // what is learned of 2,000 users, and buffers that are kept
	segment         = 16 << 20 // of the journal
)

// end waits until the process is as it was, and fails the test if it does not come
// to be. Connections to a provider are kept for 90 s.
func (s *soak) end(base, quarter picture) {
	t := s.t
	t.Helper()
	s.client.CloseIdleConnections()
	status := s.g.Quiet()
	if status.Running != 0 || status.Expired != 0 {
		t.Errorf("%d run and %d have expired though all have ended", status.Running, status.Expired)
	}
	var p picture
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Second) {
		p = measure(s.g)
		if time.Now().After(deadline) || p.goroutines <= base.goroutines+moreGoroutines && p.descriptors <= base.descriptors+moreDescriptors {
			break
		}
	}
	p = s.picture("end")
	for _, c := range []struct {
		what      string
		got, most int64
	}{
		{"goroutines", int64(p.goroutines), int64(base.goroutines + moreGoroutines)},
		{"descriptors", int64(p.descriptors), int64(base.descriptors + moreDescriptors)},
		{"bytes of heap", p.heap, base.heap + moreHeap},
		{"bytes of heap, of those after a quarter of the time", p.heap, quarter.heap + moreHeap/2},
		{"bytes of journal", p.journal, 3 * segment}, // the last is never deleted, and two may be dead
	} {
		if c.got > c.most {
			t.Errorf("at the end there are %d %s, want at most %d", c.got, c.what, c.most)
		}
	}
}

// books compares the ledger with the provider's book.
func (s *soak) books(fleet *fakellm.Server) {
	t := s.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), gateway.Patience)
	defer cancel()
	if err := fleet.Await(ctx, func(total fakellm.Total) bool { return total.Running == 0 }); err != nil {
		t.Error("the provider still runs requests")
	}
	s.g.Quiet()
	s.g.Verify()
	account := fleet.Account(fakellm.Filter{})
	if int64(account.Kept) != account.Total.Requests {
		t.Fatalf("the provider's book has %d of %d requests", account.Kept, account.Total.Requests)
	}
	served := map[string]*fakellm.Served{}
	for i := range account.Served {
		served[account.Served[i].ID] = &account.Served[i]
	}
	var ledger replay.LedgerBook
	for _, e := range s.g.Entries() {
		if at := served[e.UpstreamID]; at != nil && e.Source == "reported" && at.Billed && (e.Input != int64(at.Input) || e.Output != int64(at.Output)) {
			t.Errorf("reported, and not what the provider says: %+v, %+v", e, *at)
		}
		var source sluice.UsageSource
		if err := source.UnmarshalText([]byte(e.Source)); err != nil {
			t.Fatal(err)
		}
		ledger.Entries = append(ledger.Entries, replay.LedgerEntry{Provider: e.UpstreamID, Source: source, Input: sluice.Tokens(e.Input), Output: sluice.Tokens(e.Output)})
	}
	var provider replay.BackendBook
	for _, e := range account.Served {
		provider.Entries = append(provider.Entries, replay.BackendEntry{ID: e.ID, Billed: e.Billed, Input: e.Input, Output: e.Output})
	}
	b := replay.Reconcile(ledger, provider)
	for name, source := range b.Sources {
		t.Logf("%s: %d entries, %d exact; %d in (%+d ‰), %d out (%+d ‰)", name, source.Entries, source.Exact, source.Input, source.InputPermille, source.Output, source.OutputPermille)
	}
	t.Logf("without a provider's id: %d entries; %d in (%+d ‰), %d out (%+d ‰)", b.Unnamed.Entries, b.Unnamed.Input, b.Unnamed.InputPermille, b.Unnamed.Output, b.Unnamed.OutputPermille)
	if !b.Exact {
		t.Errorf("of %d reported entries %d are what the provider says", b.Sources["reported"].Entries, b.Sources["reported"].Exact)
	}
	if b.Missing != 0 || b.Twice != 0 || b.Unknown != 0 {
		t.Errorf("%d billed requests have no entry, %d have two, %d entries are on no invoice", b.Missing, b.Twice, b.Unknown)
	}
}
