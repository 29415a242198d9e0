package scale

import (
	"testing"

	"sluice/test/gateway"
)

// balanced wants the ledger to say of every stream what was served, to the token,
// and nothing else. It waits until all is settled, and ignores requests that never
// reached the provider.
func balanced(t *testing.T, g *gateway.Gateway, u *upstream) {
	t.Helper()
	g.Quiet()
	g.Verify()
	entries := map[string][]gateway.Entry{}
	reached := 0
	for _, e := range g.Entries() {
		if e.Attempt == 0 {
			continue
		}
		reached++
		entries[e.User] = append(entries[e.User], e)
	}
	all := u.took()
	if reached != len(all) {
		t.Errorf("%d streams were served, the ledger has %d", len(all), reached)
	}
	var input, output, inLedger, outLedger int64
	for _, s := range all {
		es := entries[s.label()]
		if len(es) == 0 {
			t.Errorf("stream %s was served and is not in the ledger", s.id)
			continue
		}
		e := es[0]
		entries[s.label()] = es[1:]
		input, output = input+int64(s.input), output+int64(s.sent)
		inLedger, outLedger = inLedger+e.Input, outLedger+e.Output
		if s.whole && (e.Outcome != "completed" || e.Source != "reported" || e.Input != int64(s.input) || e.Output != int64(s.events)) {
			t.Errorf("stream %s had %d in and %d out, the ledger says %+v", s.id, s.input, s.events, e)
		}
	}
	t.Logf("served %d streams with %d tokens in and %d out; the ledger has %d, %d and %d", len(all), input, output, reached, inLedger, outLedger)
}
