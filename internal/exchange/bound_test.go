package exchange

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// boundCase is one request, its backends and its budget.
type boundCase struct {
	op      wire.Operation
	body    string
	policy  sluice.Policy
	table   *route.Table
	engines map[sluice.BackendID]string
	prices  *price.Row
}

var genBoundCase = rapid.Custom(func(t *rapid.T) boundCase {
	c := boundCase{op: rapid.SampledFrom([]wire.Operation{wire.Chat, wire.Completions, wire.Messages}).Draw(t, "op")}
	var b strings.Builder
	b.WriteString(`{"model":"m"`)
	names := []string{"max_tokens"}
	switch c.op {
	case wire.Chat:
		names = append(names, "max_completion_tokens")
		if rapid.Bool().Draw(t, "predicts") {
			fmt.Fprintf(&b, `,"prediction":{"type":"content","content":%q}`, strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "prediction")))
		}
	case wire.Completions:
		if rapid.Bool().Draw(t, "echo") {
			b.WriteString(`,"echo":true`)
		}
	}
	if c.op != wire.Messages && rapid.Bool().Draw(t, "several") {
		fmt.Fprintf(&b, `,"n":%d`, rapid.IntRange(1, 300).Draw(t, "n"))
	}
	for _, name := range names {
		fmt.Fprintf(&b, `,"%s":%s`, name, rapid.SampledFrom([]string{"null", "0", "1", "16", "17", "3999", "4000", "4001", "123456", "9999999999999999999999"}).Draw(t, name))
	}
	if rapid.Bool().Draw(t, "unnamed") {
		b.Reset()
		b.WriteString(`{"model":"m"`)
	}
	if c.op != wire.Completions {
		b.WriteString(`,"messages":[{"role":"user","content":"x"}]`)
	}
	c.body = b.String() + "}"

	c.prices = &price.Row{Rates: price.Rates{Input: 1_000_000, Output: 2_000_000_000}}
	c.engines = map[sluice.BackendID]string{}
	c.table = &route.Table{Pools: map[sluice.PoolID]*route.Pool{}, Models: map[sluice.ModelID]*route.Model{"m": {ID: "m"}}}
	for i := range rapid.IntRange(1, 3).Draw(t, "backends") {
		id := fmt.Sprint("b", i)
		be := &route.Backend{
			ID: sluice.BackendID(id), Model: "up", Dialect: string(c.op.Dialect()), Weight: 1, Price: c.prices,
			MaxOutput: sluice.Tokens(rapid.SampledFrom([]int{0, 1, 4000, 128_000}).Draw(t, "max_output")),
			Context:   sluice.Tokens(rapid.SampledFrom([]int{0, 8000, 200_000}).Draw(t, "context")),
		}
		if rapid.IntRange(0, 3).Draw(t, "another dialect") == 0 {
			be.Dialect = string(wire.Anthropic)
			if c.op.Dialect() == wire.Anthropic {
				be.Dialect = string(wire.OpenAI)
			}
		}
		c.engines[be.ID] = rapid.SampledFrom([]string{"", "ollama", "llamacpp", "vllm"}).Draw(t, "engine")
		c.table.Pools[sluice.PoolID(id)] = &route.Pool{ID: sluice.PoolID(id), Backends: []*route.Backend{be}}
		m := c.table.Models["m"]
		m.Pools = append(m.Pools, sluice.PoolID(id))
	}
	c.policy.WarnDropped = true
	c.policy.HardSpend = rapid.Bool().Draw(t, "hard")
	c.policy.MaxOutput = sluice.Tokens(rapid.SampledFrom([]int{0, 100, 50_000}).Draw(t, "plan's bound"))
	if rapid.IntRange(0, 3).Draw(t, "no budget") == 0 {
		return c
	}
	c.policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: rapid.OneOf(rapid.Int64Range(1, 300_000_000), rapid.Int64Range(1, 2_000_000)).Draw(t, "budget")}}
	return c
})

// Whatever a client asks for and whatever a backend can do: what is asked of the
// backend is within what is held, a hard budget always has a bound to hold, and a
// change is named.
func TestForwardedBoundIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genBoundCase.Draw(t, "case")
		h, err := wire.Scan(c.op, []byte(c.body))
		if err != nil {
			return
		}
		tn := &turn{
			x: New(Options{Learned: estimate.New(estimate.Options{}), Table: func() *route.Table { return c.table }}),
			r: &Request{ID: "r", Head: h, Body: []byte(c.body), Principal: sluice.Principal{Tenant: "acme", Policy: &c.policy}},
		}
		call, refusal := tn.call(t.Context())
		if refusal != nil {
			t.Fatal(refusal)
		}
		eng, now := engine.New(engine.Config{Table: c.table}), time.Unix(1_800_000_000, 0)
		if eng.Arrive(now, call).Err != nil {
			return
		}
		for range c.engines {
			grants := eng.Advance(now)
			if len(grants) != 1 || grants[0].Err != nil {
				return
			}
			a := &attempt{place: grants[0], target: &upstream.Target{Engine: c.engines[grants[0].Backend.ID]}}
			tn.speak(a)
			tn.checkBound(t, &c, a)
			if eng.AttemptEnded(now, call.ID, engine.Result{Reason: sluice.UpstreamError}).Step != engine.Queue {
				return
			}
		}
	})
}

func (t *turn) checkBound(rt *rapid.T, c *boundCase, a *attempt) {
	h, edit, held := t.r.Head, t.edit(a), a.place.OutputBound
	sent := bytes.Join(a.pieces(edit), nil)
	got, err := wire.Scan(a.said.Op, sent)
	if err != nil {
		rt.Fatalf("%s became %s: %v", c.body, sent, err)
	}
	hard := c.policy.HardSpend && len(c.policy.Limits[sluice.ScopeTenant]) > 0
	all := got.MaxOutput*t.choices() + got.Prediction // which a translation leaves out
	switch {
	case got.HasMaxOutput && all > held:
		rt.Fatalf("%s became %s: that is %d, and %d are held", c.body, sent, all, held)
	case !h.HasMaxOutput && a.place.Backend.Context > t.plan.work.InputBound && got.MaxOutput > max(1, a.place.Backend.Context-t.plan.work.InputBound, (a.place.Backend.Context-t.plan.work.Input)/2):
		rt.Fatalf("%s became %s: with an input of up to %d that exceeds the context of %d", c.body, sent, t.plan.work.InputBound, a.place.Backend.Context)
	case a.to == nil && !h.HasMaxOutput && got.HasMaxOutput && c.policy.MaxOutput == 0 && !hard:
		rt.Fatalf("%s became %s: nothing relies on a bound", c.body, sent)
	case hard && got.MaxOutput == 0:
		rt.Fatalf("%s became %s: nothing bounds it", c.body, sent)
	case a.place.Backend.MaxOutput > 0 && got.MaxOutput > a.place.Backend.MaxOutput:
		rt.Fatalf("%s became %s: the backend writes at most %d", c.body, sent, a.place.Backend.MaxOutput)
	case got.MaxOutput > believedMaxOutput:
		rt.Fatalf("%s became %s", c.body, sent)
	}
	if e := c.engines[a.place.Backend.ID]; got.HasMaxOutput && e != "" && e != "vllm" && got.MaxParam != "max_tokens" && !strings.Contains(string(sent), `"max_tokens":`) {
		rt.Fatalf("%s became %s, whose bound %s may not know", c.body, sent, e)
	}
	if hard {
		w := t.plan.work
		w.OutputBound = all
		if need := c.prices.HardHold(w); a.place.HeldSpend < need || int64(a.place.HeldSpend) > c.policy.Limits[sluice.ScopeTenant][0].Amount {
			rt.Fatalf("%s became %s: %v are held, it can cost %v, the budget is %v", c.body, sent, a.place.HeldSpend, need, c.policy.Limits[sluice.ScopeTenant][0].Amount)
		}
	}
	dropped := t.dropped(a, edit)
	lowered := h.HasMaxOutput && got.MaxOutput != h.MaxOutput
	inserted := !h.HasMaxOutput && got.HasMaxOutput && (a.place.Backend.MaxOutput == 0 || got.MaxOutput < a.place.Backend.MaxOutput)
	if named := strings.Contains(dropped, fmt.Sprintf("=%d", got.MaxOutput)); named != (lowered || inserted) {
		rt.Fatalf("%s became %s: sluice-dropped is %q", c.body, sent, dropped)
	}
}
