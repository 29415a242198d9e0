package route

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

// model is the index done plainly: per place the hashes, the most recent first.
type model struct {
	most int
	held [][]uint64
}

func (m *model) put(i int, blocks []uint64) {
	blocks = blocks[:min(len(blocks), m.most)]
	for k := len(blocks) - 1; k >= 0; k-- {
		m.held[i] = slices.DeleteFunc(m.held[i], func(h uint64) bool { return h == blocks[k] })
		m.held[i] = slices.Insert(m.held[i], 0, blocks[k])
		m.held[i] = m.held[i][:min(len(m.held[i]), m.most)]
	}
}

func (m *model) match(i int, blocks []uint64) (n int32) {
	for int(n) < len(blocks) && slices.Contains(m.held[i], blocks[n]) {
		n++
	}
	return n
}

// prompt is a path in a small tree of prompts, chained.
func prompt(t *rapid.T) (out []uint64) {
	h := uint64(1)
	for _, b := range rapid.SliceOfN(rapid.IntRange(0, 2), 0, 12).Draw(t, "prompt") {
		h = salted(h, uint64(b+1))
		out = append(out, h)
	}
	return out
}

// The index holds what the plain one holds, and of every prompt that a place was ever
// sent a beginning or nothing.
func TestIndexIsAsThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "places")
		most := rapid.IntRange(12, 40).Draw(t, "blocks")
		var x index
		var places []*Place
		for i := range n {
			places = append(places, &Place{Backend: &Backend{ID: sluice.BackendID(fmt.Sprint(i))}})
		}
		x.configure(places, int64(most*n)*(blockBytes+nodeBytes), 512)
		m := model{most: most, held: make([][]uint64, n)}
		found := make([]int32, n)
		var sent [][]uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "place")
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				x.drop(i)
				m.held[i] = nil
			default:
				p := prompt(t)
				x.put(i, p, 7)
				m.put(i, p)
				sent = append(sent, p)
			}
			for _, p := range sent {
				x.match(p, 7, found)
				for j := range found {
					if want := m.match(j, p); found[j] != want {
						t.Fatalf("place %d holds %d blocks of a prompt, want %d", j, found[j], want)
					}
					for k, h := range p {
						if x.holders(h, 7).has(j) != (int32(k) < found[j]) {
							t.Fatalf("place %d holds block %d of a prompt of which it has %d: not a beginning", j, k, found[j])
						}
					}
				}
			}
			if blocks, holds := x.held(); holds > most*n || blocks > holds {
				t.Fatalf("%d blocks and %d holds, want at most %d", blocks, holds, most*n)
			}
		}
	})
}

// What is remembered takes no more memory than it may, by the heap's own count.
func TestIndexKeepsItsMemory(t *testing.T) {
	const memory = 8 << 20
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	places := []*Place{{Backend: &Backend{ID: "a"}}, {Backend: &Backend{ID: "b"}}, {Backend: &Backend{ID: "c"}}}
	before := heap()
	var c Chooser
	c.Configure(ByAffinity, Affinity{Memory: memory}, places)
	h, blocks := uint64(0), make([]uint64, 64)
	for n := range 6000 { // 384,000 blocks, of which there is room for 42,000
		for i := range blocks {
			h = mix(h + 1)
			blocks[i] = h
		}
		a := Asking{Tenant: sluice.TenantID(fmt.Sprint("t", n)), Input: 40_000, Prefix: Prefix{Blocks: blocks, Tokens: 512}}
		c.look(make([]Left, 3), &a)
		c.Took(n%3, &a)
		if got := c.Counts().Memory; got > memory {
			t.Fatalf("after %d prompts it takes %d bytes by its own count, want at most %d", n+1, got, memory)
		}
	}
	if got := heap() - before; got > memory {
		t.Errorf("the heap has grown by %d bytes, want at most %d", got, memory)
	}
	runtime.KeepAlive(&c)
}
