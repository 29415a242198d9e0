package handover

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// When a group asks.
const (
	lull     = time.Second     // that nobody joins before it is sent
	askFirst = 5 * time.Second // then an eighth of its age
	askMost  = time.Minute
	tries    = 5
	// A provider that has a batch no more is asked so often, over so long, before that is
	// believed: one answer may be of a replica that lags.
	goneTries = 3
	goneFor   = time.Minute
	// EndsIn is how long a provider has for a cancellation.
	EndsIn    = 12 * time.Minute
	storeWait = 10 * time.Second
	restFor   = 10 * time.Minute // of an account that did not take a batch
)

// How a batch came out.
const (
	Made      = "made"
	Refused   = "refused"
	Ended     = "ended"
	Failed    = "failed"
	Expired   = "expired"
	Cancelled = "cancelled"
	Lost      = "lost"
)

// group is the lines of one batch. Its seats are guarded by a.mu; the rest is its
// goroutine's.
type group struct {
	a     *Agent
	of    account
	at    Batch
	p     *provider
	path  string
	until time.Time

	how  string      // it came out
	said map[int]int // statuses of lines that had an error of their own, and run by themselves

	seats  map[int]*Seat
	bytes  int
	more   chan struct{} // one place: somebody has joined
	full   chan struct{} // closed when nobody can join any more
	sealed bool
	nobody chan struct{} // closed when it is to be cancelled since nobody waits
	left   bool
}

// joined has the lull begin anew. a.mu is held.
func (g *group) joined() {
	if len(g.seats) >= MaxLines && g.at.Ref == "" {
		g.seal()
	}
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// seal lets nobody join any more. a.mu is held.
func (g *group) seal() {
	if g.sealed {
		return
	}
	g.sealed = true
	if g.a.collect[g.of] == g {
		delete(g.a.collect, g.of)
	}
	close(g.full)
}

// leave takes a seat's line out.
func (g *group) leave(s *Seat) {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	if g.seats[s.line] == s {
		delete(g.seats, s.line)
		g.a.waiting--
	}
}

// unwanted notes that a line is not wanted any more.
func (g *group) unwanted(s *Seat) {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	s.unwanted = true
	for _, o := range g.seats {
		if !o.unwanted {
			return
		}
	}
	if !g.left {
		g.left = true
		close(g.nobody)
	}
}

// give gives a line its result.
func (g *group) give(line int, r Result) {
	g.a.mu.Lock()
	s := g.seats[line]
	if s != nil {
		delete(g.seats, line)
		g.a.waiting--
	}
	g.a.mu.Unlock()
	if s == nil {
		return
	}
	if h := g.a.o.Hooks.Line; h != nil && r.Err == nil {
		h(g.at.Provider, true)
	}
	s.done <- r
}

// lines are those that wait, by number.
func (g *group) lines() []int {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	out := make([]int, 0, len(g.seats))
	for n := range g.seats {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// run takes a group from its first line to its end.
func (g *group) run(found bool) {
	defer g.close()
	switch {
	case !found && !g.send():
	case g.at.Ref == "" && !g.identify():
	default:
		g.follow()
	}
}

// close ends what is left: another process, or a later claim, goes on with it.
func (g *group) close() {
	g.a.mu.Lock()
	if g.a.running[g.at.ID] == g {
		delete(g.a.running, g.at.ID)
	}
	g.seal()
	g.a.mu.Unlock()
	if g.a.ctx.Err() != nil {
		return // who waits is ended by its own context
	}
	for _, n := range g.lines() {
		g.give(n, Result{Err: ErrUndone, Sent: true})
	}
}

// follow asks how the batch stands until it has ended, and gives its lines their results.
func (g *group) follow() {
	began := time.Now()
	timer := time.NewTimer(askFirst)
	defer timer.Stop()
	until := time.NewTimer(time.Until(g.until))
	defer until.Stop()
	var end ending
	var gone missing
	for nobody, failed := g.nobody, 0; ; {
		select {
		case <-g.a.ctx.Done():
			return
		case <-nobody:
			nobody = nil
			end.begin()
		case <-until.C:
			end.begin()
		case <-timer.C:
		}
		if end.begun() && !end.asked {
			err := g.p.cancel(g.a.ctx, g.at.Ref)
			end.asked = err == nil || refused(err)
		}
		st, err := g.p.ask(g.a.ctx, g.at.Ref)
		if err == nil && st.ended {
			err = g.collectResults(&st)
		}
		switch {
		case g.a.ctx.Err() != nil:
			return
		case err == nil && st.ended:
			g.told(st.how, nil)
			return
		case gone.seen(err), end.over():
			g.told(Lost, err)
			g.takeBack(g.lines(), true)
			return
		case err == nil:
			failed = 0
		default:
			failed++
			g.a.o.Log.Warn("a provider's batch could not be asked for: it is tried again", slog.String("batch", g.at.Ref), slog.Any("error", err))
		}
		timer.Reset(min(max(time.Since(began)/8, askFirst<<min(failed, 3)), askMost))
	}
}

// missing is that a provider does not have a batch any more.
type missing struct {
	times int // in a row
	since time.Time
}

// seen takes how the provider answered, and reports whether it is to be believed.
func (m *missing) seen(err error) bool {
	if err != errGone {
		m.times = 0
		return false
	}
	if m.times++; m.times == 1 {
		m.since = time.Now()
	}
	return m.times >= goneTries && time.Since(m.since) >= goneFor
}

// ending is that a batch is cancelled, which has a time of its own.
type ending struct {
	until time.Time
	asked bool
}

func (e *ending) begin() {
	if e.until.IsZero() {
		e.until = time.Now().Add(EndsIn)
	}
}

func (e *ending) begun() bool { return !e.until.IsZero() }
func (e *ending) over() bool  { return e.begun() && time.Now().After(e.until) }

// collectResults reads the results of a batch that has ended, and gives each line its
// first; what has none is run by itself.
func (g *group) collectResults(st *standing) error {
	g.how, g.said = st.how, map[int]int{}
	waiting := map[int]bool{}
	for _, n := range g.lines() {
		waiting[n] = true
	}
	var all passed
	for _, from := range st.results {
		over, err := g.p.read(g.a.ctx, &g.at, from, func(line int, r Result) {
			switch _, had := g.said[line]; {
			case r.Err != nil, had, !waiting[line]:
			case g.p.again(&r):
				g.said[line] = r.Status
			default:
				delete(waiting, line)
				g.give(line, r)
			}
		})
		if err != nil {
			return err
		}
		all.odd, all.long, all.rest = all.odd+over.odd, all.long+over.long, all.rest || over.rest
	}
	if all != (passed{}) {
		g.a.o.Log.Warn("results of a provider's batch are passed over, and their lines run by themselves: they are none of a line, longer than the bound, or behind the most that is read",
			slog.String("batch", g.at.Ref), slog.Int("odd", all.odd), slog.Int("long", all.long), slog.Bool("rest", all.rest))
	}
	g.takeBack(slices.Sorted(maps.Keys(waiting)), false)
	return nil
}

// takeBack has lines run by themselves.
func (g *group) takeBack(lines []int, sent bool) {
	if len(lines) == 0 {
		return
	}
	if err := g.keep(func(ctx context.Context) error { return g.a.takeBack(ctx, g.at.ID, lines) }); err != nil {
		g.a.o.Log.Warn("lines of a batch wait for the store", slog.Any("error", err))
	}
	g.undone(lines, sent)
}

func (g *group) undone(lines []int, sent bool) {
	for _, n := range lines {
		g.give(n, Result{Err: &Undone{g.at.Ref, g.how, g.said[n]}, Sent: sent})
	}
}

// keep asks the store, again where it fails.
func (g *group) keep(f func(context.Context) error) (err error) {
	for range tries {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.a.ctx), storeWait)
		err = f(ctx)
		cancel()
		if err == nil || g.a.ctx.Err() != nil {
			return err
		}
		time.Sleep(lull)
	}
	return err
}

func (g *group) told(how string, err error) {
	g.how = how
	if h := g.a.o.Hooks.Batch; h != nil {
		h(g.at.Provider, how)
	}
	g.a.o.Log.Info("a provider's batch", slog.String("batch", g.at.Ref), slog.String("job", g.at.Job), slog.String("how", how), slog.Any("error", err))
}
