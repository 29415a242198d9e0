package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func prefixOf(t testing.TB, op Operation, body string, key uint64) []uint64 {
	t.Helper()
	h, err := Scan(op, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	blocks, n := h.Prefix([]byte(body), key, 64, 256, nil)
	if len(blocks) != min(n/64, 256) {
		t.Errorf("%d blocks of 64 bytes for a prompt of %d", len(blocks), n)
	}
	return blocks
}

func common(a, b []uint64) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestPrefix(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20)
	first := prefixOf(t, Chat, `{"model":"m","messages":[{"role":"user","content":"`+long+`"}]}`, 1)
	for _, tt := range []struct {
		name, body string
		op         Operation
		least      int // blocks in common
		most       int
	}{
		{"the same", `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, Chat, len(first), len(first)},
		{"elsewhere in the body", `{"messages":[{"role":"user","content":"` + long + `"}],"temperature":1,"model":"m"}`, Chat, len(first), len(first)},
		{"the next turn", `{"model":"m","messages":[{"role":"user","content":"` + long + `"},{"role":"assistant","content":"` + long + `"}]}`, Chat, len(first), len(first)},
		{"another end", `{"model":"m","messages":[{"role":"user","content":"` + long[:200] + "?" + long[201:] + `"}]}`, Chat, 3, 3},
		{"another beginning", `{"model":"m","messages":[{"role":"user","content":"?` + long[1:] + `"}]}`, Chat, 0, 0},
		{"other tools", `{"model":"m","messages":[{"role":"user","content":"` + long + `"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, Chat, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := common(first, prefixOf(t, tt.op, tt.body, 1)); n < tt.least || n > tt.most {
				t.Errorf("%d blocks in common, want from %d to %d of %d", n, tt.least, tt.most, len(first))
			}
		})
	}
	if n := common(first, prefixOf(t, Chat, `{"model":"m","messages":[{"role":"user","content":"`+long+`"}]}`, 2)); n != 0 {
		t.Errorf("with another key %d blocks are the same", n)
	}
	system := `"system":"` + long + `"`
	a := prefixOf(t, Messages, `{"model":"m","max_tokens":1,`+system+`,"messages":[{"role":"user","content":"a"}]}`, 1)
	b := prefixOf(t, Messages, `{"messages":[{"role":"user","content":"b and more"}],"model":"m","max_tokens":1,`+system+`}`, 1)
	if n := common(a, b); n < 5 {
		t.Errorf("%d blocks of the system prompt are the same, want 5", n)
	}
}

// No two of many blocks that differ in one byte are alike.
func TestPrefixTellsBlocksApart(t *testing.T) {
	seen := map[uint64]string{}
	for i := range 320 {
		for _, c := range []byte("abcdefgh") {
			text := []byte(strings.Repeat("x", 320))
			text[i] = c
			blocks := prefixOf(t, Completions, fmt.Sprintf(`{"model":"m","prompt":%q}`, text), 1)
			for k, h := range blocks {
				key := string(text[:min(64*(k+1)-1, 320)])
				if other, ok := seen[h]; ok && other != key {
					t.Fatalf("%q and %q are alike", other, key)
				}
				seen[h] = key
			}
			if !slices.Equal(blocks, prefixOf(t, Completions, fmt.Sprintf(`{"model":"m","prompt":%q}`, text), 1)) {
				t.Fatal("the same prompt gives other blocks")
			}
		}
	}
}

// BenchmarkPrefix is what hashing adds to a scan.
func BenchmarkPrefix(b *testing.B) {
	for _, size := range []int{8 << 10, 128 << 10, 1 << 20} {
		body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("some words of a prompt ", size/23) + `"}]}`)
		h, err := Scan(Chat, body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			out := make([]uint64, 0, 256)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				h.Prefix(body, 1, 2048, 256, out)
			}
		})
	}
}
