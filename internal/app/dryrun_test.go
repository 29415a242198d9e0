package app

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/admin"
)

// twoPools has a model of two pools, whose shares go by end user.
const twoPools = `
  small: {backends: [{name: small-a, provider: sim, model: sim-small, price: {input: $1, output: $10}}]}
  next: {backends: [{name: next-a, provider: sim, model: sim-small, price: {input: $2, output: $20}}]}
models:
  sim-small: {sticky: user, pools: [small, {pool: next, canary: 10%}]}
`

func (b *bench) askAs(user string) (backend string) {
	b.t.Helper()
	status, h, body := b.do("POST", "http://"+b.app.Addr()+"/v1/chat/completions", b.key,
		`{"model":"sim-small","user":"`+user+`","max_tokens":2,"messages":[{"role":"user","content":"hello [[tokens=2]]"}]}`)
	if status != 200 {
		b.t.Fatalf("%s: %d %s", user, status, body)
	}
	return h.Get("Sluice-Backend")
}

// What a dry run says is what the gateway then does: of the same callers exactly so
// many go elsewhere, and those that would be refused are.
func TestDryRunAgreesWithTheGateway(t *testing.T) {
	b := newBench(t)
	head, tail, _ := strings.Cut(plainFile, "\n  small:")
	_, tail, _ = strings.Cut(tail, "plans:")
	file := strings.Replace(head, "price: {input: $1, output: $1000}", "price: free", 1) + twoPools + "plans:" + strings.Replace(tail, "spend_per_day: $0.10, ", "", 1)
	b.write(file)
	b.start()
	const users = 30
	before := make([]string, users)
	for i := range before {
		before[i] = b.askAs(fmt.Sprint("u", i))
	}

	larger := strings.Replace(file, "canary: 10%", "canary: 60%", 1)
	same, err := b.app.dryRun(t.Context(), admin.DryRunQuery{Text: file})
	if err != nil || same.Requests != users || same.Same != users || same.Unknown != 0 || same.CostNow != same.CostThen || same.CostNow == 0 {
		t.Fatalf("under the same file: %+v, %v", same, err)
	}
	said, err := b.app.dryRun(t.Context(), admin.DryRunQuery{Text: larger})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := b.app.dryRun(t.Context(), admin.DryRunQuery{Text: strings.Replace(larger, "  sim-small: {sticky", "  other: {sticky", 1)})
	if err != nil || gone.Refused != users || len(gone.Refusals) != 1 || gone.Refusals[0].Reason != "model_not_found" {
		t.Errorf("without the model: %+v, %v", gone, err)
	}

	b.reload(larger)
	moved := 0
	for i, was := range before {
		if is := b.askAs(fmt.Sprint("u", i)); is != was {
			moved++
			if was != "small-a" || is != "next-a" {
				t.Errorf("u%d went from %s to %s", i, was, is)
			}
		}
	}
	if said.Moved != moved || moved == 0 || said.Same != users-moved {
		t.Errorf("the dry run said that %d would move and %d not; %d of %d did", said.Moved, said.Same, moved, users)
	}
	if len(said.Moves) != 1 || said.Moves[0].From != "small/small-a" || said.Moves[0].To != "next/next-a" || said.Moves[0].Requests != moved || said.CostThen <= said.CostNow {
		t.Errorf("got %+v", said.Report)
	}
	if _, err := b.app.rollback(t.Context(), "", by); err != nil {
		t.Fatal(err)
	}
	for i, was := range before {
		if is := b.askAs(fmt.Sprint("u", i)); is != was {
			t.Errorf("after the rollback u%d goes to %s, and before the change to %s", i, is, was)
		}
	}
}
