package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// world is two regions and two models, each at home in one of them, as a test knows
// them without asking the engine.
type world struct {
	t        *rapid.T
	eng      *engine.Engine
	now      time.Time
	headroom map[string]int64
	returns  time.Duration
	overload bool
	backends map[string][]*route.Backend // by region
	down     map[sluice.BackendID]bool   // its breaker is open
	back     map[string]time.Time        // when a region that was lost came back
	waiting  []*visitor
	running  []*visitor
	next     int
	away     int // attempts that began away from home
}

// visitor is a request.
type visitor struct {
	id      sluice.RequestID
	home    string
	class   sluice.Class
	at      string // region in which it runs
	backend sluice.BackendID
	kv      int64
	since   time.Time
	until   time.Time
	away    bool
}

var homes = map[sluice.ModelID]string{"m": "east", "n": "west"}

// dollars is what a million tokens cost in each region.
var dollars = map[string]int64{"east": 3, "west": 7}

func newWorld(t *rapid.T, conc, kv int64) *world {
	w := &world{
		t: t, now: start, returns: time.Duration(rapid.IntRange(1, 90).Draw(t, "return")) * time.Second,
		headroom: map[string]int64{}, backends: map[string][]*route.Backend{}, down: map[sluice.BackendID]bool{}, back: map[string]time.Time{},
	}
	tab := &route.Table{
		Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}, Headroom: w.headroom,
		Breaker: route.BreakerPolicy{Failures: 1, Domain: 1000}, Retries: route.NaiveRetries(),
	}
	apart := rapid.Bool().Draw(t, "pools apart")
	for _, region := range []string{"east", "west"} {
		w.headroom[region] = rapid.Int64Range(0, 1000).Draw(t, "headroom")
		pool := sluice.PoolID("both")
		if apart {
			pool = sluice.PoolID(region)
		}
		if tab.Pools[pool] == nil {
			tab.Pools[pool] = &route.Pool{ID: pool, Queue: route.QueueBounds{MaxWait: time.Hour}}
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "backends") {
			b := &route.Backend{
				ID: sluice.BackendID(fmt.Sprint(region, i)), Dialect: "openai", Weight: 1, Region: region, Domain: fmt.Sprint(region, i),
				Price: parsePrice(nil, fmt.Sprintf("%d/0", dollars[region])), Capacity: route.Capacity{Concurrency: conc, KVTokens: sluice.Tokens(kv)},
			}
			tab.Pools[pool].Backends = append(tab.Pools[pool].Backends, b)
			w.backends[region] = append(w.backends[region], b)
		}
	}
	w.overload = rapid.Bool().Draw(t, "leaves for overload")
	for m, home := range homes {
		other := map[string]string{"east": "west", "west": "east"}[home]
		pools := []sluice.PoolID{"both"}
		if apart {
			pools = []sluice.PoolID{"east", "west"}
		}
		tab.Models[m] = &route.Model{ID: m, Pools: pools, Locality: &route.Locality{Regions: []string{home, other}, Return: w.returns, Overload: w.overload}}
	}
	w.eng = engine.New(engine.Config{Table: tab})
	return w
}

func (w *world) arrive(model sluice.ModelID, class sluice.Class, kv int64, maxWait, takes time.Duration) {
	w.next++
	v := &visitor{id: sluice.RequestID(fmt.Sprint("r", w.next)), home: homes[model], class: class, kv: kv, since: w.now}
	got := w.eng.Arrive(w.now, engine.Call{
		ID: v.id, Model: model, Dialect: "openai", Class: class, MaxWait: maxWait,
		Principal: sluice.Principal{Tenant: "t", Project: sluice.DefaultProject, Key: "k"},
		Work:      sluice.Work{Input: sluice.Tokens(kv), InputBound: sluice.Tokens(kv)},
	})
	if got.Err == nil {
		v.until = w.now.Add(takes) // from its start on: put right then
		w.waiting = append(w.waiting, v)
	}
	w.advance()
}

// advance takes the engine's answers and holds them to what the test knows.
func (w *world) advance() {
	var guests []*visitor
	for _, g := range w.eng.Advance(w.now) {
		i := slices.IndexFunc(w.waiting, func(v *visitor) bool { return v.id == g.ID })
		if i < 0 {
			w.t.Fatalf("%s does not wait", g.ID)
		}
		v := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		if g.Err != nil {
			continue
		}
		v.at, v.backend, v.away = g.Backend.Region, g.Backend.ID, g.Backend.Region != homes[w.modelOf(v)]
		v.until = w.now.Add(v.until.Sub(v.since))
		w.running = append(w.running, v)
		if cost := sluice.Nano(v.kv * dollars[v.at] * 1000); g.HeldSpend < cost {
			w.t.Fatalf("%s runs in %s, where it costs %v, and holds %v", v.id, v.at, cost, g.HeldSpend)
		}
		if v.away != g.Away {
			w.t.Fatalf("%s is at home in %s and runs in %s, and away is told to be %v", v.id, v.home, v.at, g.Away)
		}
		if v.away {
			guests = append(guests, v)
			w.away++
			w.mayLeave(v)
			w.within(v)
		}
	}
	for _, v := range guests {
		for _, o := range w.waiting {
			if o.home == v.at && o.class <= v.class && w.serves(o.home) {
				w.t.Fatalf("%s, away from home, starts in %s, where %s of class %v waits", v.id, v.at, o.id, o.class)
			}
		}
	}
}

func (w *world) modelOf(v *visitor) sluice.ModelID {
	if v.home == "east" {
		return "m"
	}
	return "n"
}

func (w *world) serves(region string) bool {
	return slices.ContainsFunc(w.backends[region], func(b *route.Backend) bool { return !w.down[b.ID] })
}

// mayLeave wants a request's home lost, or coming back, where it runs elsewhere.
func (w *world) mayLeave(v *visitor) {
	if at, ok := w.back[v.home]; !w.overload && w.serves(v.home) && (!ok || w.now.Sub(at) >= w.returns) && !v.since.Before(at) {
		w.t.Fatalf("%s runs in %s while %s serves", v.id, v.at, v.home)
	}
}

// within holds what runs away from home in a region to its headroom.
func (w *world) within(v *visitor) {
	var slots, kv, allSlots, allKV int64
	for _, o := range w.running {
		if o.at == v.at && o.away {
			slots, kv = slots+1, kv+o.kv
		}
	}
	for _, b := range w.backends[v.at] {
		if !w.down[b.ID] {
			allSlots, allKV = allSlots+b.Capacity.Concurrency, allKV+int64(b.Capacity.KVTokens)
		}
	}
	h := w.headroom[v.at]
	if ramping := w.back[v.at]; !ramping.IsZero() && w.now.Sub(ramping) < time.Minute {
		return // its backends have less than all of their slots, for the tests of breakers to tell
	}
	if slots > allSlots*h/1000 || allKV > 0 && kv > allKV*h/1000 {
		w.t.Fatalf("%d requests with %d tokens are away from home in %s, of which %d ‰ of %d and %d are theirs", slots, kv, v.at, h, allSlots, allKV)
	}
}

// pass lets time go by, and answers come that are due.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		for _, v := range slices.Clone(w.running) {
			if !v.until.After(w.now) {
				w.end(v)
			}
		}
		w.advance()
	}
}

func (w *world) end(v *visitor) {
	w.running = slices.DeleteFunc(w.running, func(o *visitor) bool { return o == v })
	if err := w.eng.Settle(w.now, v.id, engine.Actual{}); err != nil {
		w.t.Fatal(err)
	}
	if w.down[v.backend] { // it may have been its probe
		w.sync()
	}
}

// sync takes from the engine which backends are out: whose probe has succeeded is its
// own to know.
func (w *world) sync() {
	for region, list := range w.backends {
		before := w.serves(region)
		for _, p := range w.eng.Dump(w.now, engine.Zoom{}, 10).Pools {
			for _, b := range p.Backends {
				if slices.ContainsFunc(list, func(o *route.Backend) bool { return o.ID == b.ID }) {
					w.down[b.ID] = b.Health == "cooling" || b.Health == "probing"
				}
			}
		}
		if !before && w.serves(region) {
			w.back[region] = w.now
		}
	}
}

func (w *world) fail(b *route.Backend) {
	w.down[b.ID] = true
	w.eng.Observe(w.now, engine.Signal{Backend: b.ID, Probed: true})
	w.advance()
}

// Whatever comes, fails and returns: nothing leaves a home that serves it; what is away
// never has more of a region than its headroom, and never starts before one of the
// region's own of its class or a more important one.
func TestGuestsLeaveWhatIsNotTheirs(t *testing.T) {
	away := 0
	rapid.Check(t, func(t *rapid.T) {
		kv := rapid.SampledFrom([]int64{0, 400}).Draw(t, "memory")
		w := newWorld(t, rapid.Int64Range(1, 6).Draw(t, "slots"), kv)
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					w.arrive(rapid.SampledFrom([]sluice.ModelID{"m", "n"}).Draw(t, "model"), sluice.Class(rapid.IntRange(0, 2).Draw(t, "class")),
						rapid.SampledFrom([]int64{10, 50, 150}).Draw(t, "kv"), time.Hour, time.Duration(rapid.IntRange(1, 20).Draw(t, "takes"))*time.Second)
				}
			},
			"pass": func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second) },
			"fail": func(t *rapid.T) {
				all := w.backends[rapid.SampledFrom([]string{"east", "west"}).Draw(t, "region")]
				for _, b := range all[:rapid.IntRange(1, len(all)).Draw(t, "n")] {
					w.fail(b)
				}
			},
		})
		away += w.away
	})
	if away == 0 {
		t.Error("nothing ever left its home: the test shows nothing")
	}
}

// However many guests there are, and however long they stay: no request of the region's
// own starts later than it would in a region of its own that has so much less.
func TestGuestsKeepTheWaitBound(t *testing.T) {
	away := 0
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.Int64Range(1, 8).Draw(t, "slots")
		w := newWorld(t, slots, 0)
		takes := time.Duration(rapid.IntRange(1, 15).Draw(t, "takes")) * time.Second
		all := slots * int64(len(w.backends["west"]))
		free := make([]time.Time, all-all*w.headroom["west"]/1000) // of each place of the smaller region
		if len(free) == 0 {
			t.Skip("nothing is the region's own")
		}
		for _, b := range w.backends["east"] {
			w.fail(b)
		}
		var latest []time.Time // by which each must have started
		for range rapid.IntRange(5, 60).Draw(t, "seconds") {
			for range rapid.IntRange(0, 5).Draw(t, "guests") {
				w.arrive("m", sluice.Interactive, 1, time.Hour, time.Duration(rapid.IntRange(1, 60).Draw(t, "stays"))*time.Second)
			}
			for range rapid.IntRange(0, 3).Draw(t, "own") {
				i := 0
				for j := range free {
					if free[j].Before(free[i]) {
						i = j
					}
				}
				at := w.now
				if free[i].After(at) {
					at = free[i]
				}
				free[i] = at.Add(takes)
				latest = append(latest, at)
				w.arrive("n", sluice.Interactive, 1, time.Hour, takes)
			}
			w.pass(time.Second)
			began := len(latest) - len(slices.DeleteFunc(slices.Clone(w.waiting), func(v *visitor) bool { return v.home != "west" }))
			for i := began; i < len(latest); i++ {
				if !latest[i].After(w.now) {
					t.Fatalf("request %d of the region's own waits still at +%v, and was to start at +%v", i, w.now.Sub(start), latest[i].Sub(start))
				}
			}
		}
		away += w.away
	})
	if away == 0 {
		t.Error("there never was a guest: the test shows nothing")
	}
}
