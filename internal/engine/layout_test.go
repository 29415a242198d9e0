package engine

import (
	"reflect"
	"testing"
)

// TestLayout holds what a request is asked for from its turn on to the cache lines in
// which it is thought to be. The allocator begins what is large and has pointers with a
// word of its own, behind which a request begins.
func TestLayout(t *testing.T) {
	const cacheLine = 64
	begins := map[uintptr]string{}
	var visit func(in reflect.Type, at uintptr)
	visit = func(in reflect.Type, at uintptr) {
		for f := range in.Fields() {
			begins[at+f.Offset] = f.Name
			if f.Name == "course" || f.Name == "call" {
				visit(f.Type, at+f.Offset)
			}
		}
	}
	head := reflect.ValueOf(new(request)).Pointer() % cacheLine
	visit(reflect.TypeFor[request](), head)
	for i, name := range []string{2: "hash", "taken", "covers", "ID", 9: "item"} {
		if got := begins[uintptr(i)*cacheLine]; name != "" && got != name {
			t.Errorf("cache line %d of a request begins with %q, want %s", i, got, name)
		}
	}
}
