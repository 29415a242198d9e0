package quota_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice"
	"sluice/internal/quota"
)

// TestTraces runs testdata/*.dd: a command per step and what it answers.
//
//	limits scope=S [id=I] [part=P] [shadow]   lines "dimension window amount"
//	asks scope=S [id=I] [part=P]        the same, for what a request asks of its run
//	bound all=n [tenant=n]              the most accounts that callers name
//	at T | advance D | back D           the clock
//	only                                forgets the owners, not their accounts
//	reserve r dim=n… [least-dim=n] [most-dim=n]   over every owner that has limits
//	gauges r dim=n… | return r
//	topup r dim=n… | post r dim=n…
//	settle r dim=n… | late r dim=n… | release r | expire r | forget r
//	seed scope=S [id=I] at=T            one line, as for limits
//	print                               every counter
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	book   *quota.Book
	now    time.Time
	owners []quota.Owner
	limits map[quota.Owner][]sluice.Limit
	asked  map[quota.Owner][]sluice.Limit
	shadow map[quota.Owner]bool
	held   map[string]*quota.Reservation
	need   map[string]quota.Amounts
}

func newScript() *script {
	return &script{
		book:   quota.NewBook(),
		now:    time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		limits: make(map[quota.Owner][]sluice.Limit),
		asked:  make(map[quota.Owner][]sluice.Limit),
		shadow: make(map[quota.Owner]bool),
		held:   make(map[string]*quota.Reservation),
		need:   make(map[string]quota.Amounts),
	}
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "limits":
		o := owner(t, d)
		if !slices.Contains(s.owners, o) {
			s.owners = append(s.owners, o)
		}
		s.limits[o] = parseLimits(t, d.Input)
		s.shadow[o] = d.HasArg("shadow")
		return ""
	case "asks":
		s.asked[owner(t, d)] = parseLimits(t, d.Input)
		return ""
	case "only":
		s.owners = nil
		return ""
	case "bound":
		var all, of int
		d.ScanArgs(t, "all", &all)
		d.ScanArgs(t, "tenant", &of)
		s.book.Bound(all, of)
		return ""
	case "at":
		s.now = parseTime(t, d.CmdArgs[0].Key)
		return ""
	case "advance", "back":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		if d.Cmd == "back" {
			by = -by
		}
		s.now = s.now.Add(by)
		return ""
	case "seed":
		var at string
		d.ScanArgs(t, "at", &at)
		s.book.Seed(s.now, parseTime(t, at), owner(t, d), parseLimits(t, d.Input)[0])
		return ""
	case "print":
		return s.print()
	}
	return s.step(t, d)
}

// step runs the commands about one reservation.
func (s *script) step(t *testing.T, d *datadriven.TestData) string {
	id := d.CmdArgs[0].Key
	figures, least, most := parseAmounts(t, d.CmdArgs[1:])
	if d.Cmd == "reserve" {
		return s.reserve(id, figures, least, most)
	}
	r := s.held[id]
	switch d.Cmd {
	case "gauges":
		if a := s.book.TakeGauges(r, figures); a != nil {
			return "blocked by " + ownerText(a.Owner()) + "\n" + refusalText(s.now, s.book.GaugeRefusal(s.now, r, figures))
		}
		return "taken" + s.would(r)
	case "return":
		s.book.ReturnGauges(r)
	case "topup":
		if f := s.book.TopUp(s.now, r, figures, least); f != nil {
			return refusalText(s.now, f)
		}
		return "held"
	case "post":
		s.book.Post(s.now, r, figures)
	case "settle":
		s.book.Settle(s.now, r, figures)
	case "late":
		s.book.SettleLate(s.now, r, figures)
	case "release":
		s.book.Release(s.now, r)
	case "expire":
		s.book.Expire(s.now, r)
	case "forget":
		s.book.Forget(r)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return ""
}

func (s *script) reserve(id string, need, least, most quota.Amounts) string {
	var claims []quota.Claim
	for _, o := range s.owners {
		claims = append(claims, quota.Claim{Owner: o, Limits: s.limits[o], Asked: s.asked[o], Shadow: s.shadow[o]})
	}
	r := s.held[id]
	if r == nil || r.Open() || r.Expired() {
		r = &quota.Reservation{}
		s.held[id] = r
	}
	s.book.Open(s.now, r, claims)
	r.Bound(most)
	if f := s.book.Reserve(s.now, r, need, least); f != nil {
		s.book.Release(s.now, r)
		return refusalText(s.now, f)
	}
	return "held" + s.would(r)
}

// would tells what a shadow would have done.
func (s *script) would(r *quota.Reservation) string {
	if f := r.Would(); f != nil {
		return "; would be " + refusalText(s.now, f)
	}
	return ""
}

func (s *script) print() string {
	var b strings.Builder
	for _, o := range s.owners {
		a := s.book.Account(o)
		if a == nil {
			fmt.Fprintf(&b, "%s: none\n", ownerText(o))
			continue
		}
		for _, c := range s.book.View(s.now, a, nil) {
			fmt.Fprintf(&b, "%s: %s used=%d held=%d remaining=%d", ownerText(o), limitText(c.Limit), c.Used, c.Held, c.Remaining)
			if c.Exposed != 0 {
				fmt.Fprintf(&b, " exposed=%d", c.Exposed)
			}
			if c.Previous != 0 {
				fmt.Fprintf(&b, " previous=%d", c.Previous)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func refusalText(now time.Time, f *quota.Refusal) string {
	s := fmt.Sprintf("refused by %s: %s requested=%d used=%d held=%d", ownerText(f.Owner), limitText(f.Limit), f.Requested, f.Used, f.Held)
	switch {
	case f.Never:
		return s + "; never fits"
	case f.Spent:
		return s + "; spent for good"
	case f.InFlight && f.Wait == 0:
		s += "; held by requests in flight"
	case f.InFlight:
		s += fmt.Sprintf("; held by requests in flight, else in %v", f.Wait)
	default:
		s += fmt.Sprintf("; in %v", f.Wait)
	}
	if !f.Reset.IsZero() {
		s += fmt.Sprintf("; reset in %v", f.Reset.Sub(now))
	}
	return s
}

func ownerText(o quota.Owner) string {
	var s strings.Builder
	s.WriteString(o.Scope.String())
	for _, part := range []string{o.ID, o.Part} {
		if part != "" {
			s.WriteString("/" + part)
		}
	}
	return s.String()
}

func limitText(l sluice.Limit) string {
	if l.Window == sluice.NoWindow {
		return fmt.Sprintf("%v %d", l.Dimension, l.Amount)
	}
	return fmt.Sprintf("%v %d/%v", l.Dimension, l.Amount, l.Window)
}

func owner(t *testing.T, d *datadriven.TestData) (o quota.Owner) {
	var scope string
	d.ScanArgs(t, "scope", &scope)
	if err := o.Scope.UnmarshalText([]byte(scope)); err != nil {
		t.Fatal(err)
	}
	d.MaybeScanArgs(t, "id", &o.ID)
	d.MaybeScanArgs(t, "part", &o.Part)
	return o
}

func parseTime(t *testing.T, s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func parseLimits(t *testing.T, in string) (out []sluice.Limit) {
	for line := range strings.Lines(in) {
		var dim, window string
		var l sluice.Limit
		if _, err := fmt.Sscan(line, &dim, &window, &l.Amount); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if err := l.Dimension.UnmarshalText([]byte(dim)); err != nil {
			t.Fatal(err)
		}
		if err := l.Window.UnmarshalText([]byte(window)); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

var short = map[string]sluice.Dimension{
	"req": sluice.Requests, "in": sluice.InputTokens, "out": sluice.OutputTokens,
	"conc": sluice.Concurrency, "kv": sluice.KVTokens, "spend": sluice.Spend, "all": sluice.AllTokens,
}

func parseAmounts(t *testing.T, args []datadriven.CmdArg) (need, least, most quota.Amounts) {
	for _, a := range args {
		to, key := &need, a.Key
		if k, ok := strings.CutPrefix(key, "least-"); ok {
			to, key = &least, k
		}
		if k, ok := strings.CutPrefix(key, "most-"); ok {
			to, key = &most, k
		}
		d, ok := short[key]
		if !ok {
			t.Fatalf("unknown dimension %q", key)
		}
		if _, err := fmt.Sscan(a.Vals[0], &to[d]); err != nil {
			t.Fatal(err)
		}
	}
	return need, least, most
}
