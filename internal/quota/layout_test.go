package quota

import (
	"reflect"
	"testing"
)

// TestLayout holds accounts and their counters to the memory in which they are thought to
// be: one piece, that begins a cache line.
func TestLayout(t *testing.T) {
	if n := reflect.TypeFor[Account]().Size(); n != accountBytes {
		t.Errorf("an account has %d bytes, want %d", n, accountBytes)
	}
	if n := reflect.TypeFor[counter]().Size(); n != counterBytes {
		t.Errorf("a counter has %d bytes, want %d", n, counterBytes)
	}
	for counters := range 7 {
		for range 64 {
			a := newAccount(Owner{}, counters, 0)
			at, behind := reflect.ValueOf(a).Pointer(), reflect.ValueOf(a.counters).Pointer()
			if behind != at+accountBytes || cap(a.counters) < counters {
				t.Fatalf("room for %d of %d counters is %d bytes from their account's beginning", cap(a.counters), counters, behind-at)
			}
			if counters > 2 && counters <= 4 && at%64 != 0 {
				t.Fatalf("an account with %d counters is at %x", counters, at)
			}
		}
	}
}
