package ladder

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
)

var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// look is how often the tests' driver looks.
const look = 250 * time.Millisecond

// bad and calm are signals beyond every Enter bound and within every Exit bound of the
// defaults; between is neither.
var (
	bad     = Signal{Age: 5 * time.Second, Own: 5 * time.Second, KV: 990, Waits: true, Refused: 300}
	calm    = Signal{}
	between = Signal{Age: time.Second, KV: 900, Waits: true, Refused: 20}
)

func acting(p Policy) *Ladder {
	l := &Ladder{}
	l.Configure(start, p)
	return l
}

// drive gives a ladder a signal for so long, and returns its moves.
func drive(l *Ladder, from time.Time, d time.Duration, s Signal) (moves []Change, end time.Time) {
	for end = from; end.Before(from.Add(d)); end = end.Add(look) {
		if c, ok := l.Observe(end, s); ok {
			moves = append(moves, c)
		}
	}
	return moves, end
}

func TestClimbsAndComesDown(t *testing.T) {
	l := acting(Default(Act))
	moves, now := drive(l, start, time.Minute, bad)
	if l.Acting() != ShedInteractive || len(moves) != int(ShedInteractive) {
		t.Fatalf("after a minute of overload it stands on %d, after %d moves", l.Acting(), len(moves))
	}
	for i, c := range moves {
		if int(c.To) != i+1 || c.From != c.To-1 || c.Cause != CauseAge || !c.Acts {
			t.Errorf("move %d is %+v", i, c)
		}
	}
	if moves, now = drive(l, now, 10*time.Minute, between); len(moves) != 0 {
		t.Errorf("between the bounds it moves: %+v", moves)
	}
	if d := l.Earliest(now, Clamp); d != 7*DefaultHold {
		t.Errorf("it says that it is down in %v", d)
	}
	moves, _ = drive(l, now, 8*DefaultHold, calm)
	if l.Acting() != 0 || len(moves) != int(ShedInteractive) || l.Restless() {
		t.Errorf("after the calm it stands on %d, after %d moves", l.Acting(), len(moves))
	}
}

// It knows what put it up, on its way down too.
func TestKnowsWhatRaisedIt(t *testing.T) {
	l := acting(Default(Act))
	_, now := drive(l, start, time.Minute, bad)
	if r := l.Raised(); r.Cause != CauseAge || r.Signal != bad {
		t.Errorf("raised by %+v", r)
	}
	_, now = drive(l, now, 2*DefaultHold, calm)
	if r := l.Raised(); l.Acting() == ShedInteractive || r.Cause != CauseAge {
		t.Errorf("on %d, raised by %+v", l.Acting(), r)
	}
	if _, err := l.Pin(now, Pin{Tier: Clamp, Author: "ann", Reason: "drill", Expires: now.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	drive(l, now, 2*time.Second, between)
	if r := l.Raised(); r.Cause != CausePin || r.By != "ann" || r.Reason != "drill" || l.Acting() != Rung(Clamp) {
		t.Errorf("on %d, raised by %+v", l.Acting(), r)
	}
}

// What waits of standard sheds no interactive.
func TestLastRungIsForInteractive(t *testing.T) {
	l := acting(Default(Act))
	standard := bad
	standard.Own = 0
	if drive(l, start, time.Hour, standard); l.Acting() != ShedStandard {
		t.Errorf("it stands on %d", l.Acting())
	}
}

func TestEachSignalMovesIt(t *testing.T) {
	for _, c := range []struct {
		s     Signal
		cause Cause
	}{
		{Signal{Age: 2 * time.Second}, CauseAge},
		{Signal{KV: 970, Waits: true}, CauseKV},
		{Signal{Refused: 50}, CauseRefused},
		{Signal{KV: 1000}, CauseNone}, // a full memory that keeps nobody waiting is a good use of it
		{Signal{Age: 1999 * time.Millisecond, KV: 969, Waits: true, Refused: 49}, CauseNone},
	} {
		l := acting(Default(Act))
		moves, _ := drive(l, start, DefaultRise+look, c.s)
		if got := len(moves) == 1 && moves[0].Cause == c.cause; got != (c.cause != CauseNone) {
			t.Errorf("%+v: moves %+v", c.s, moves)
		}
	}
}

// A ladder that only says what it would do changes nothing, and a pin of an operator does.
func TestShadow(t *testing.T) {
	l := acting(Default(Watch))
	moves, now := drive(l, start, time.Minute, bad)
	if l.Acting() != 0 || l.Would() != ShedInteractive || moves[0].Acts {
		t.Errorf("acting %d, would %d, %+v", l.Acting(), l.Would(), moves[0])
	}
	if _, err := l.Pin(now, Pin{Tier: Defer, Author: "ann", Reason: "drill", Expires: now.Add(time.Minute)}); err != nil || l.Acting() != Rung(Defer) {
		t.Errorf("pinned: acting %d, %v", l.Acting(), err)
	}
	if c, ok := l.Unpin(now); !ok || l.Acting() != 0 || c.Acts {
		t.Errorf("unpinned: acting %d", l.Acting())
	}
	l.Configure(now, Policy{})
	if _, err := l.Pin(now, Pin{Tier: Defer, Author: "ann", Reason: "drill", Expires: now.Add(time.Minute)}); err == nil || l.Would() != 0 {
		t.Errorf("off: on %d, pinned without an error", l.Would())
	}
}

func TestPinsThatAreNone(t *testing.T) {
	l := acting(Default(Act))
	good := Pin{Tier: Shed, Author: "ann", Reason: "drill", Expires: start.Add(time.Hour)}
	for name, change := range map[string]func(*Pin){
		"tier": func(p *Pin) { p.Tier = NumTiers }, "author": func(p *Pin) { p.Author = "" }, "reason": func(p *Pin) { p.Reason = "" },
		"past": func(p *Pin) { p.Expires = start }, "for ever": func(p *Pin) { p.Expires = start.Add(MaxPin + 1) },
	} {
		p := good
		change(&p)
		if _, err := l.Pin(start, p); err == nil || l.View(start).Pin != nil {
			t.Errorf("%s: it holds", name)
		}
	}
	if _, err := l.Pin(start, good); err != nil || l.Acting() != RungOf(Shed) {
		t.Errorf("%v, on %d", err, l.Acting())
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Policy){
		"no gap":        func(p *Policy) { p.Steps[Defer].Exit.Age = p.Steps[Defer].Enter.Age },
		"no end":        func(p *Policy) { p.Steps[Defer].Exit.KV = 0 },
		"no beginning":  func(p *Policy) { p.Steps[Defer].Enter = Bounds{} },
		"beyond whole":  func(p *Policy) { p.Steps[Shed].Enter.Refused = 1001 },
		"no dwell":      func(p *Policy) { p.Hold = 0 },
		"hold too long": func(p *Policy) { p.MaxHold = p.Hold - 1 },
		"no answer":     func(p *Policy) { p.Output = 0 },
		"no such tier":  func(p *Policy) { p.Top = NumTiers },
	} {
		p := Default(Act)
		change(&p)
		if p.Validate() == nil {
			t.Errorf("%s: it passes", name)
		}
	}
	for m := range Mode(NumModes) {
		p := Default(m)
		if err := p.Validate(); err != nil {
			t.Errorf("the default of %s: %v", m, err)
		}
		if got, ok := ModeNamed(m.String()); !ok || got != m {
			t.Errorf("%s is read as %s", m, got)
		}
	}
}

func TestActs(t *testing.T) {
	p := Default(Act)
	for r := range NumRungs {
		a := p.Acts(r)
		if a.Tier != r.Tier() || (a.Output > 0) != (r >= 1) || (a.Input > 0) != (r >= 2) || a.Defer != (r >= 3) || a.Smaller != (r >= 4) || (a.Wait >= 0) != (r >= 4) {
			t.Errorf("on %d: %+v", r, a)
		}
		for c := sluice.Interactive; c <= sluice.Batch; c++ {
			if shed := c >= a.Shed; shed != (c > sluice.Interactive && int(r) >= int(RungOf(Shed))+int(sluice.Batch-c)) {
				t.Errorf("on %d: %s is shed: %v", r, c, shed)
			}
		}
	}
	a := p.Acts(1)
	for _, c := range []struct{ bound, least, answers, want int64 }{{5000, 16, 1, 1024}, {5000, 16, 3, 3072}, {500, 16, 1, 500}, {5000, 5000, 1, 5000}, {5000, 16, 0, 1024}} {
		if got := a.Answer(sluice.Tokens(c.bound), sluice.Tokens(c.least), c.answers); got != sluice.Tokens(c.want) {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if ShedBatch.Tier().String() != "shed" || !strings.HasPrefix(Tier(9).String(), "unknown") {
		t.Error("a tier has another word")
	}
}

// mostLeaves is the bound on how often a rung is left: see the package's comment.
func mostLeaves(p *Policy, t time.Duration) int {
	k := 0
	for h := p.Hold; h < p.MaxHold; h *= 2 {
		k++
	}
	return (k + 1) * (1 + int(t/p.MaxHold))
}

// Whatever the signals are: it moves by one rung, not before its dwell is over, leaves no
// rung more often than the bound says, and is down within its holds once they are calm.
func TestNeverFlaps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Default(Act)
		p.Rise = time.Duration(rapid.IntRange(1, 20).Draw(rt, "rise")) * look
		p.Hold = time.Duration(rapid.IntRange(1, 20).Draw(rt, "hold")) * look
		p.MaxHold = p.Hold * time.Duration(rapid.IntRange(1, 20).Draw(rt, "times"))
		p.Top = Tier(rapid.IntRange(1, int(Shed)).Draw(rt, "top"))
		l := acting(p)
		signals := rapid.SliceOfN(rapid.SampledFrom([]Signal{bad, calm, between, {KV: 1000, Waits: true}}), 1, 30).Draw(rt, "signals")
		lasts := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 30).Draw(rt, "lasts")
		n := rapid.IntRange(500, 4000).Draw(rt, "looks")
		var leaves [NumRungs]int
		now, lastMove, i, left := start, time.Time{}, 0, lasts[0]
		for range n {
			if left--; left < 0 {
				i++
				left = lasts[i%len(lasts)]
			}
			from := l.Acting()
			if c, ok := l.Observe(now, signals[i%len(signals)]); ok {
				if d := int(c.To) - int(c.From); d != 1 && d != -1 || c.From != from || l.Acting() != c.To {
					rt.Fatalf("it moved %+v from %d", c, from)
				}
				if c.To.Tier() > p.Top {
					rt.Fatalf("it stands on %v, above %v", c.To.Tier(), p.Top)
				}
				if since := now.Sub(lastMove); !lastMove.IsZero() && since < min(p.Rise, p.Hold) {
					rt.Fatalf("it moved after %v", since)
				}
				if c.To < c.From {
					leaves[c.From]++
				}
				lastMove = now
			}
			now = now.Add(look)
		}
		most := mostLeaves(&p, now.Sub(start))
		for r, n := range leaves {
			if n > most {
				rt.Fatalf("rung %d was left %d times in %v, at most %d", r, n, now.Sub(start), most)
			}
		}
		within := l.Earliest(now, Clamp)
		if drive(l, now, within+time.Duration(NumRungs)*look, calm); l.Acting() != 0 {
			rt.Fatalf("in calm it is still on %d after %v", l.Acting(), within)
		}
	})
}

// A pin holds until it expires, whatever the signals are, and then the ladder goes on
// from there.
func TestPinsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := acting(Default(rapid.SampledFrom([]Mode{Watch, Act}).Draw(rt, "mode")))
		_, now := drive(l, start, time.Duration(rapid.IntRange(0, 60).Draw(rt, "before"))*time.Second, bad)
		tier := Tier(rapid.IntRange(0, int(Shed)).Draw(rt, "tier"))
		lasts := time.Duration(rapid.IntRange(1, 600).Draw(rt, "lasts")) * time.Second
		if _, err := l.Pin(now, Pin{Tier: tier, Author: "ann", Reason: "drill", Expires: now.Add(lasts)}); err != nil {
			rt.Fatal(err)
		}
		end := now.Add(lasts)
		for ; now.Before(end); now = now.Add(look) {
			s := rapid.SampledFrom([]Signal{bad, calm, between}).Draw(rt, "signal")
			if c, ok := l.Observe(now, s); ok || l.Acting() != RungOf(tier) {
				rt.Fatalf("it left its pin: %+v", c)
			}
		}
		c, ok := l.Observe(now, between)
		if !ok || c.Cause != CauseExpired || l.View(now).Pin != nil || l.Would() != RungOf(tier) {
			rt.Fatalf("after the pin: %+v", c)
		}
		if drive(l, now, time.Duration(NumRungs)*DefaultMaxHold, calm); l.Would() != 0 {
			rt.Fatalf("after the pin it does not come down: %d", l.Would())
		}
	})
}

// Refusals count against arrivals of the last seconds, and not where there are few.
func TestWindow(t *testing.T) {
	var w Window
	now := start
	for range 9 {
		w.Arrived(now)
		w.Refused(now)
	}
	if n := w.Share(now); n != 0 {
		t.Errorf("of nine arrivals it makes %d", n)
	}
	for range 11 {
		w.Arrived(now.Add(time.Second))
	}
	if n := w.Share(now.Add(time.Second)); n != 450 {
		t.Errorf("nine of twenty are %d", n)
	}
	if n := w.Share(now.Add(10 * time.Second)); n != 0 {
		t.Errorf("ten seconds later it is %d", n)
	}
	w.Refused(now) // a moment that has gone by counts as the latest
	if n := w.Share(now.Add(time.Hour)); n != 0 {
		t.Errorf("an hour later it is %d", n)
	}
}
