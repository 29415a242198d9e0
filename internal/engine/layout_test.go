package engine

import (
	"reflect"
	"testing"

	"sluice/internal/quota"
)

// TestLayout holds what a request is asked for from its turn on to the cache lines in
// which it is thought to be. The allocator begins what is large and has pointers with a
// word of its own, behind which a request begins.
func TestLayout(t *testing.T) {
	const cacheLine = 64
	begins, at := map[uintptr]string{}, map[string]uintptr{}
	var visit func(in reflect.Type, at uintptr)
	visit = func(in reflect.Type, from uintptr) {
		for f := range in.Fields() {
			begins[from+f.Offset], at[f.Name] = f.Name, from+f.Offset
			if f.Name == "course" || f.Name == "call" {
				visit(f.Type, from+f.Offset)
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
	parties := reflect.TypeFor[quota.Reservation]().Field(0).Type.Size() // what a turn asks a reservation for
	for _, test := range []struct {
		what        string
		bytes, want uintptr
	}{
		{"turnBefore", turnBefore, at["item"] - at["hash"]},
		{"turnBytes", turnBytes, at["res"] + parties - at["item"]},
		{"endBytes", endBytes, at["res"] + reflect.TypeFor[quota.Reservation]().Size() + reflect.TypeFor[quota.Holds]().Size() - at["hash"]},
	} {
		if test.bytes != test.want {
			t.Errorf("%s is %d, want %d", test.what, test.bytes, test.want)
		}
	}
}
