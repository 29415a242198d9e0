package acceptance

import (
	"testing"
	"time"

	"sluice/internal/fakellm"
	"sluice/internal/replay"
)

// TestVTCArena replays the arena's ten minutes of 27 clients, every other call
// streamed, and wants the ledger to be the provider's book.
func TestVTCArena(t *testing.T) {
	rows := trace(t, "vtc_arena_27clients.csv", "vtc-arena", replay.ReadOptions{Seed: 1})
	rows = repeated(rows, scale(t)*len(rows))
	for i := range rows {
		rows[i].Whole = i%2 == 1
	}
	clients := clientsOf(rows)
	if len(clients) != 27 {
		t.Fatalf("the trace has %d clients, want 27", len(clients))
	}
	g := start(t, setup{clients: clients, fleet: fakellm.Options{Seed: 1, Speed: 30}, engine: "vllm", stops: true})
	w := newWire(t, nil)
	r := g.run(w, replay.Options{Rows: rows, Speed: 40, MaxOutput: 64})
	b := g.close(w)
	b.told(t, r)
	b.exact(t)
	if n := g.paid(b.entries); n != len(clients) {
		t.Errorf("%d of %d tenants have used something", n, len(clients))
	}
}

// TestAzureConversation replays the first minutes of a hosted service, whose
// prompts are long and whose rows name no client, in the other dialect.
func TestAzureConversation(t *testing.T) {
	rows := trace(t, "azure_llm_2023_conv.csv", "azure-conv", replay.ReadOptions{Seed: 1, Until: time.Duration(2*scale(t)) * time.Minute})
	clients := []string{"a", "b", "c", "d"}
	for i := range rows {
		rows[i].Client = clients[i%len(clients)]
		rows[i].Whole = i%3 == 2
	}
	g := start(t, setup{clients: clients, fleet: fakellm.Options{Seed: 2, Speed: 20}, stops: true})
	w := newWire(t, nil)
	r := g.run(w, replay.Options{Rows: rows, Speed: 10, MaxOutput: 150, Dialect: replay.Anthropic})
	b := g.close(w)
	b.told(t, r)
	b.exact(t)
}

// told wants the clients to have been told what the ledger says.
func (b *books) told(t *testing.T, r *replay.Report) {
	t.Helper()
	var in, out int64
	for i := range b.entries {
		in += int64(b.entries[i].Usage.InputTotal())
		out += int64(b.entries[i].Usage.OutputTotal())
	}
	if r.Told.Requests != r.Sent || r.Told.Input != in || r.Told.Output != out {
		t.Errorf("%d clients were told %d in, %d out; the ledger says %d, %d", r.Told.Requests, r.Told.Input, r.Told.Output, in, out)
	}
}

// exact wants every entry to be reported and to equal the provider's.
func (b *books) exact(t *testing.T) {
	t.Helper()
	b.log(t)
	reported := b.Sources["reported"]
	if !b.Exact || reported.Entries != b.total.Requests || len(b.Sources) != 1 {
		t.Errorf("not every entry is the provider's: %+v", b.Books)
	}
}
