package byname_test

import (
	"hash/maphash"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/byname"
)

type thing struct{ name string }

// colliding gives many names the same hash, so that runs of slots grow long, wrap
// round the end and are moved up.
type colliding struct{}

func (colliding) Name(t *thing) string { return t.name }
func (colliding) Hash(_ maphash.Seed, name string) uint64 {
	return uint64(len(name)) * 7
}

type spread struct{}

func (spread) Name(t *thing) string                       { return t.name }
func (spread) Hash(seed maphash.Seed, name string) uint64 { return maphash.String(seed, name) }

// TestIndexAgainstMap does to an index what it does to a map, and compares.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, against[colliding])
	rapid.Check(t, against[spread])
}

func against[N byname.Names[string, thing]](t *rapid.T) {
	var x byname.Index[string, thing, N]
	model, hashes := map[string]*thing{}, map[string]uint64{}
	for range rapid.IntRange(1, 200).Draw(t, "steps") {
		soon := x.Hash(rapid.StringMatching(`[ab]{0,6}`).Draw(t, "soon")) // to ask for what is there, or is not, changes nothing
		x.Prefetch(soon)
		x.PrefetchElement(soon)
		name := rapid.StringMatching(`[ab]{0,6}`).Draw(t, "name")
		switch have := model[name]; {
		case have == nil:
			model[name] = &thing{name}
			if hash := x.Hash(name); rapid.Bool().Draw(t, "added hashed") {
				hashes[name] = hash
				x.AddHashed(model[name], hash)
			} else if hashes[name] = x.Add(model[name]); hashes[name] != hash {
				t.Fatalf("%q was added by hash %d, want %d", name, hashes[name], hash)
			}
		case rapid.Bool().Draw(t, "remove"):
			delete(model, name)
			if rapid.Bool().Draw(t, "hashed") {
				x.RemoveHashed(have, hashes[name])
			} else {
				x.Remove(have)
			}
		}
		if x.Len() != len(model) {
			t.Fatalf("%d elements, want %d", x.Len(), len(model))
		}
		if got := x.Find(name); got != model[name] {
			t.Fatalf("found %v as %q, want %v", got, name, model[name])
		}
		if got := x.FindHashed(name, x.Hash(name)); got != model[name] {
			t.Fatalf("found %v by the hash of %q, want %v", got, name, model[name])
		}
	}
	for name, want := range model {
		if got := x.Find(name); got != want {
			t.Fatalf("found %v as %q, want %v", got, name, want)
		}
	}
	seen := 0
	for e := range x.All() {
		if model[e.name] != e {
			t.Fatalf("%q is not one of the elements", e.name)
		}
		seen++
	}
	if seen != len(model) {
		t.Fatalf("All came to %d elements, want %d", seen, len(model))
	}
}

func TestRemoveOfAStranger(t *testing.T) {
	var x byname.Index[string, thing, spread]
	x.Add(&thing{"a"})
	defer func() {
		if recover() == nil {
			t.Error("the removal of an element that was never added did not panic")
		}
	}()
	x.Remove(&thing{"b"})
}
