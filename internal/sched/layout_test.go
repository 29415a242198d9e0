package sched

import (
	"reflect"
	"testing"
)

// TestLayout holds what the same steps ask for to the cache lines in which it is thought
// to be.
func TestLayout(t *testing.T) {
	const cacheLine = 64
	offset := func(of any, path ...string) uintptr {
		at, in := uintptr(0), reflect.TypeOf(of)
		for _, name := range path {
			f, ok := in.FieldByName(name)
			if !ok {
				t.Fatalf("%v has no %s", in, name)
			}
			at, in = at+f.Offset, f.Type
		}
		return at
	}
	for _, test := range []struct {
		what  string
		first uintptr // byte of the group
		last  uintptr // the first that is behind it
	}{
		{"end of an item", offset(Item{}, "Class"), offset(Item{}, "line")},
		{"turn of an item", offset(Item{}, "line"), offset(Item{}, "deadline")},
		{"start of an item", offset(Item{}, "deadline"), offset(Item{}, "Value")},
		{"turn of a line", offset(line{}, "inNode"), offset(line{}, "id")},
		{"arrival at a line", offset(line{}, "id"), offset(line{}, "inLot")},
		{"charge of a tenant", offset(tenant{}, "standing", "class"), offset(tenant{}, "standing", "id")},
		{"name of a tenant", offset(tenant{}, "standing", "id"), offset(tenant{}, "standing", "bytes")},
		{"load of a tenant", offset(tenant{}, "standing", "bytes"), offset(tenant{}, "seat")},
		{"turn of a seat", offset(tenant{}, "seat", "inLane"), offset(tenant{}, "seat", "lane")},
		{"charge of a project", offset(tenant{}, "seat", "lane"), offset(tenant{}, "project", "ready")},
		{"turn of a node", offset(tenant{}, "project", "node", "inSeat"), offset(tenant{}, "project", "node", "all")},
	} {
		if test.first%cacheLine != 0 || test.last-test.first > cacheLine {
			t.Errorf("%s: bytes %d to %d, want no more than one cache line", test.what, test.first, test.last)
		}
	}
	for _, test := range []struct {
		what        string
		bytes, want uintptr
	}{
		{"of a tenant before its seat", seatBefore, offset(tenant{}, "seat", "inLane")},
		{"of a tenant from its seat to the end of its project", seatBytes, offset(tenant{}, "byIdle") - offset(tenant{}, "seat")},
		{"of a line that a turn asks for", lineTurn, offset(line{}, "inLot") - offset(line{}, "inNode")},
		{"of an item that a turn asks for", itemTurn, offset(Item{}, "deadline") - offset(Item{}, "line")},
	} {
		if test.bytes != test.want {
			t.Errorf("%d bytes %s are asked for, want %d", test.bytes, test.what, test.want)
		}
	}
	for range 64 { // and the allocator begins them with a cache line
		for _, of := range []any{new(line), new(tenant)} {
			if at := reflect.ValueOf(of).Pointer(); at%cacheLine != 0 {
				t.Fatalf("a %T is at %x", of, at)
			}
		}
	}
}
