package tabletop

import (
	"fmt"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
)

// TestControlSeesNoTruth: the package that decides can name neither the fleet nor
// what the tabletop knows of a request.
func TestControlSeesNoTruth(t *testing.T) {
	files, err := filepath.Glob("control/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		f, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if strings.HasPrefix(p, "sluice/internal/tabletop") || p == "sluice/internal/fleet" || p == "sluice/internal/capacity" {
				t.Errorf("%s imports %s", name, p)
			}
		}
	}
}

// TestTrueLengthsAreNotRead plays the same recording twice. In the second, what has
// not ended by some moment is longer, and what has not begun is of any length: all
// that was decided until then is the same, to the nanosecond.
func TestTrueLengthsAreNotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := recordedWorld(t)
		cut := time.Duration(rapid.IntRange(1, 20_000).Draw(t, "cut")) * time.Millisecond
		first := decisions(t, s, cut)
		for i := range s.Sources {
			rows := slices.Clone(s.Sources[i].Arrivals.Rows)
			for k := range rows {
				switch id := [2]int{i, k}; {
				case first.ended[id]:
				case first.begun[id]:
					rows[k].Output += sluice.Tokens(rapid.IntRange(0, 3000).Draw(t, "more"))
				default:
					rows[k].Output = sluice.Tokens(rapid.IntRange(1, 3000).Draw(t, "other"))
				}
			}
			s.Sources[i].Arrivals.Rows = rows
		}
		second := decisions(t, s, cut)
		for i := range min(len(first.log), len(second.log)) {
			if first.log[i] != second.log[i] {
				t.Fatalf("until %v what is not known yet was longer, and decided was\n%s\nin place of\n%s", cut, second.log[i], first.log[i])
			}
		}
		if len(first.log) != len(second.log) {
			t.Fatalf("%d decisions in place of %d", len(second.log), len(first.log))
		}
	})
}

// recordedWorld is sources that play recordings, on machines whose memory is taken
// as answers grow: one that is reserved for an answer's whole length knows it, as
// no engine does.
func recordedWorld(t *rapid.T) *Scenario {
	pick := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	engine := fleet.Profile{
		PrefillRate: 8000, StepBase: time.Duration(pick("step", 5, 40)) * time.Millisecond, StepPerJob: 50 * time.Microsecond,
		KVCapacity: sluice.Tokens(pick("kv", 8_000, 40_000)), Paged: true, Slots: pick("slots", 1, 16),
	}
	var sources []Source
	for i := range pick("sources", 1, 3) {
		x := tenant(fmt.Sprintf("t%d", i), 0, 0, 0)
		x.Class = sluice.Class(pick("class", 0, 2))
		x.Client = Client{Bound: 4000, Patience: time.Duration(pick("patience", 0, 10)) * time.Second, Retry: Retry{Max: 2, Backoff: time.Second}}
		x.Arrivals = Arrivals{Process: Trace}
		at := time.Duration(0)
		for range pick("rows", 20, 120) {
			at += time.Duration(pick("gap", 0, 400)) * time.Millisecond
			x.Arrivals.Rows = append(x.Arrivals.Rows, Row{At: at, Input: sluice.Tokens(pick("input", 1, 3000)), Output: sluice.Tokens(pick("output", 1, 400))})
		}
		sources = append(sources, x)
	}
	s := world(pick("replicas", 1, 2), engine, sources...)
	s.Length, s.Drain = 30*time.Second, 5*time.Second
	for _, p := range s.Policies[0].Table.Pools {
		for _, b := range p.Backends {
			b.Capacity.Concurrency = int64(pick("concurrency", 1, 16))
			b.StopsOnCancel = pick("stops", 0, 1) == 1
		}
	}
	for i := range s.Machines {
		s.Machines[i].Scrape = time.Second
	}
	for _, who := range s.Policies[0].Principals {
		who.Policy.HardSpend = pick("hard", 0, 1) == 1
		who.Policy.Limits[sluice.ScopeKey] = []sluice.Limit{
			{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(pick("budget", 1, 30)) * int64(sluice.Dollar) / 100},
			{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: int64(pick("tokens", 4000, 40_000))},
			{Dimension: sluice.KVTokens, Amount: int64(pick("memory", 8000, 20_000))},
		}
	}
	s.Events = []Event{{At: 8 * time.Second, Backends: &Backends{IDs: []sluice.BackendID{"b0"}, Speed: 500}}}
	return s
}

type decided struct {
	log          []string
	begun, ended map[[2]int]bool // by source and row
}

// decisions is all that happened before a moment, but for what only the client
// knows.
func decisions(t *rapid.T, s *Scenario, before time.Duration) *decided {
	p, err := newPlay(testContext(), s, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &decided{begun: map[[2]int]bool{}, ended: map[[2]int]bool{}}
	p.watched = watched{number: -1, to: func(st Step) {
		if st.At >= before {
			return
		}
		for q := p.roster.head; q != nil; q = q.next {
			if q.number != st.Request {
				continue
			}
			id := [2]int{q.source, int(q.index)}
			d.begun[id] = d.begun[id] || strings.HasPrefix(st.Text, "attempt ")
			d.ended[id] = d.ended[id] || strings.HasPrefix(st.Text, "it has ended")
		}
		text, _, _ := strings.Cut(st.Text, "; its answer will have")
		d.log = append(d.log, fmt.Sprintf("%v request %d: %s", st.At, st.Request, text))
	}}
	for p.step() && p.now < before {
	}
	return d
}
