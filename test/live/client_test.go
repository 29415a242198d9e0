package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice"
)

// ask is one request: input tokens that need no counting, and an output that its
// bound cuts.
type ask struct {
	tenant  sluice.TenantID
	in, out int
	class   string
	wait    time.Duration // sluice-max-wait
	whole   bool          // not streamed
	ctx     context.Context
}

// got is what the client saw.
type got struct {
	at     time.Duration // when it asked, since the start of the run
	status int
	header http.Header
	queued time.Duration // as the gateway says, by header or comment
	told   bool          // that it said so
	first  time.Duration // until the first content
	took   time.Duration // until the end
	tokens int           // of output, by the usage that the answer tells
	reason string
	limit  limit
	err    error // of the connection
}

// bodies keeps the prompts of a run: most are of few sizes.
type bodies struct {
	mu sync.Mutex
	of map[int]string
}

func (b *bodies) prompt(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[int]string{}
	}
	s, ok := b.of[n]
	if !ok {
		s = strings.TrimSuffix(strings.Repeat("7,", n), ",")
		b.of[n] = s
	}
	return s
}

func (s *site) do(a ask) (g got) {
	start := time.Now()
	g.at = start.Sub(s.log.start)
	body := fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},"max_tokens":%d,"prompt":[%s]}`, !a.whole, a.out, s.bodies.prompt(a.in))
	if a.whole {
		body = fmt.Sprintf(`{"model":"m","max_tokens":%d,"prompt":[%s]}`, a.out, s.bodies.prompt(a.in))
	}
	if a.ctx == nil {
		a.ctx = s.ctx
	}
	req, err := http.NewRequestWithContext(a.ctx, "POST", "http://gateway/v1/completions", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+string(a.tenant))
	if a.class != "" {
		req.Header.Set("Sluice-Class", a.class)
	}
	if a.wait != 0 {
		req.Header.Set("Sluice-Max-Wait", a.wait.String())
	}
	resp, err := s.client.Do(req)
	if err != nil {
		g.err, g.took = err, time.Since(start)
		return g
	}
	defer resp.Body.Close()
	g.status, g.header, g.reason = resp.StatusCode, resp.Header, resp.Header.Get("Sluice-Reason")
	if ms, err := strconv.Atoi(resp.Header.Get("Sluice-Queue-Ms")); err == nil {
		g.queued, g.told = time.Duration(ms)*time.Millisecond, true
	}
	if resp.StatusCode != 200 || a.whole {
		g.whole(resp.Body)
		g.took = time.Since(start)
		return g
	}
	g.stream(resp.Body, start)
	g.took = time.Since(start)
	return g
}

// limit is that which refused, as the answer tells it.
type limit struct {
	Used, Held int64
	Reset      time.Time
}

type answer struct {
	Choices []struct{ Text string }
	Usage   *struct {
		Completion int `json:"completion_tokens"`
	}
	Error *struct {
		Sluice struct {
			Reason string
			Limit  limit
		}
	}
}

func (g *got) take(data []byte) (content bool) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		g.err = err
		return false
	}
	if a.Usage != nil {
		g.tokens = a.Usage.Completion
	}
	if a.Error != nil {
		g.limit = a.Error.Sluice.Limit
	}
	if a.Error != nil && g.reason == "" {
		g.reason = a.Error.Sluice.Reason
	}
	return len(a.Choices) > 0 && a.Choices[0].Text != ""
}

func (g *got) whole(r io.Reader) {
	b, err := io.ReadAll(r)
	if err != nil {
		g.err = err
		return
	}
	g.take(b)
}

// stream reads events. It parses none but the first with content and what is not
// content.
func (g *got) stream(r io.Reader, start time.Time) {
	lines := bufio.NewReader(r)
	for ended := false; ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) || !ended {
				g.err = errors.Join(err, errors.New("the stream has no end"))
			}
			return
		}
		data, isData := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		comment, late := bytes.CutPrefix(line, []byte(": sluice "))
		switch {
		case late:
			var c struct {
				Queue int64 `json:"queue_ms"`
			}
			if g.err = json.Unmarshal(comment, &c); g.err == nil {
				g.queued, g.told = time.Duration(c.Queue)*time.Millisecond, true
			}
		case !isData:
		case string(data) == "[DONE]":
			ended = true
		case g.first == 0 || !bytes.Contains(data, []byte(`"text":"`)) || bytes.Contains(data, []byte(`"usage":{`)):
			if g.take(data) && g.first == 0 {
				g.first = max(time.Since(start), 1)
			}
		}
	}
}

// crowd is requests in flight of clients that run side by side.
type crowd struct {
	s    *site
	wg   sync.WaitGroup
	mu   sync.Mutex
	gots map[sluice.TenantID][]got
}

func (s *site) crowd() *crowd { return &crowd{s: s, gots: map[sluice.TenantID][]got{}} }

// send asks, beside whatever else goes on.
func (c *crowd) send(a ask) {
	c.wg.Go(func() {
		g := c.s.do(a)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gots[a.tenant] = append(c.gots[a.tenant], g)
	})
}

// loop keeps n requests in flight until the time is over.
func (c *crowd) loop(n int, length time.Duration, a ask) {
	end := time.Now().Add(length)
	for range n {
		c.wg.Go(func() {
			for time.Now().Before(end) {
				g := c.s.do(a)
				c.mu.Lock()
				c.gots[a.tenant] = append(c.gots[a.tenant], g)
				c.mu.Unlock()
				if g.err != nil || g.status != 200 {
					time.Sleep(time.Second)
				}
			}
		})
	}
}

// every sends what next says, each after a while, until the time is over.
func (c *crowd) every(length time.Duration, next func(i int) (ask, time.Duration)) {
	end := time.Now().Add(length)
	c.wg.Go(func() {
		for i := 0; time.Now().Before(end); i++ {
			a, pause := next(i)
			c.send(a)
			time.Sleep(pause)
		}
	})
}

// all waits for the end of all and returns what was seen of a tenant.
func (c *crowd) all() map[sluice.TenantID][]got {
	c.wg.Wait()
	return c.gots
}

// between is what was asked within a time.
func between(gs []got, from, to time.Duration) []got {
	return slices.DeleteFunc(slices.Clone(gs), func(g got) bool { return g.at < from || g.at >= to })
}

// quantile is the least value that q thousandths of all do not exceed.
func quantile(gs []got, q int, of func(got) time.Duration) time.Duration {
	if len(gs) == 0 {
		return 0
	}
	vs := make([]time.Duration, len(gs))
	for i, g := range gs {
		vs[i] = of(g)
	}
	slices.Sort(vs)
	return vs[min(len(vs)-1, (len(vs)*q+999)/1000-1)]
}

func waited(g got) time.Duration { return g.queued }
func first(g got) time.Duration  { return g.first }

// served judges that all were, and that each was told how long it waited.
func (s *site) served(gs []got) {
	s.t.Helper()
	for _, g := range gs {
		if g.status != 200 || g.err != nil || !g.told {
			s.t.Fatalf("asked at %v: status %d, %v, reason %q, after %v; told its wait: %v; %v", g.at, g.status, g.err, g.reason, g.took, g.told, g.header)
		}
	}
}
