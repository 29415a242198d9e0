package stateful

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func mark(id int) Mark { return MarkOf(route.State{Kind: route.StateFile, ID: fmt.Sprint(id)}) }

// naive is a book that looks at everything each time.
type naive struct {
	perTenant, total int
	all              []Record // the least recently used first
}

func (n *naive) find(now time.Time, t sluice.TenantID, m Mark) *route.Pin {
	for i := range n.all {
		if r := &n.all[i]; r.Tenant == t && r.Mark == m && r.Until.After(now) {
			return &r.Pin
		}
	}
	return nil
}

func (n *naive) put(now time.Time, r Record, stored bool) (taken bool, displaced []Record) {
	for _, o := range n.all {
		if o.Mark == r.Mark && o.Pin == r.Pin && o.Tenant != r.Tenant && o.Until.After(now) && !stored {
			// Of the tenant's own there may be one elsewhere, which the claim ends.
			return false, nil
		}
	}
	until := r.Until
	n.all = slices.DeleteFunc(n.all, func(o Record) bool {
		if o.Mark != r.Mark {
			return false
		}
		if o.Tenant == r.Tenant && o.Pin == r.Pin && o.Until.After(now) && o.Until.After(until) {
			until = o.Until
		}
		return !o.Until.After(now) || o.Tenant == r.Tenant || o.Pin == r.Pin && stored
	})
	r.Until = until
	n.all = append(n.all, r)
	return true, nil
}

// TestBookBounds holds the bounds, and who makes room for whom, whatever comes.
func TestBookBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perTenant, total := rapid.IntRange(1, 6).Draw(t, "per tenant"), rapid.IntRange(1, 12).Draw(t, "total")
		b, now := newBook(perTenant, total), noon
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "passes")) * time.Minute)
			r := Record{
				Mark: mark(rapid.IntRange(0, 15).Draw(t, "id")), Tenant: sluice.TenantID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant")),
				Pin: route.Pin{Provider: "p", Key: rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key")}, Until: now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "keep")) * time.Minute),
			}
			before := map[sluice.TenantID]int{}
			for id, s := range b.shelves {
				before[id] = s.n
			}
			b.put(now, &r, false)
			for _, d := range b.dropped {
				if d.Tenant != r.Tenant && before[d.Tenant] <= before[r.Tenant] {
					t.Fatalf("%s, which has %d, made room for %s, which had %d", d.Tenant, before[d.Tenant], r.Tenant, before[r.Tenant])
				}
			}
			check(t, b)
		}
	})
}

// check compares what a book says of itself with what it has.
func check(t *rapid.T, b *book) {
	n, places := 0, map[route.Pin]int{}
	for id, s := range b.shelves {
		c := 0
		for i := s.newest; i != 0; i = b.entries[i].older {
			if b.entries[i].shelf != s {
				t.Fatalf("an entry is on two shelves")
			}
			places[b.entries[i].place.pin]++
			c++
		}
		if c != s.n || c == 0 || c > b.perTenant || s.tenant != id {
			t.Fatalf("%s has %d entries and says %d, bound %d", id, c, s.n, b.perTenant)
		}
		if s.n > b.largest[0].n || b.largest[s.at] != s {
			t.Fatalf("the largest is not first")
		}
		n += c
	}
	chained := 0
	for m, i := range b.marks {
		for ; i != 0; i = b.entries[i].next {
			if b.entries[i].mark != m {
				t.Fatalf("an entry is with another mark")
			}
			chained++
		}
	}
	if n != b.len() || chained != n || n > b.total {
		t.Fatalf("%d entries on shelves, %d by mark, %d in all, bound %d", n, chained, b.len(), b.total)
	}
	for at, p := range b.places {
		if pin := at.pin; p.n != places[pin] {
			t.Fatalf("%v has %d entries and says %d", pin, places[pin], p.n)
		}
	}
}

// TestBookAgrees compares a book that has room with one that looks at everything: what is
// found, and that a tenant never finds what came to another first.
func TestBookAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, n, now := newBook(1000, 1000), &naive{perTenant: 1000, total: 1000}, noon
		tenants := []sluice.TenantID{"a", "b", "c"}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "passes")) * time.Minute)
			r := Record{
				Mark: mark(rapid.IntRange(0, 5).Draw(t, "id")), Tenant: rapid.SampledFrom(tenants).Draw(t, "tenant"),
				Pin: route.Pin{Provider: "p", Key: rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key")}, Until: now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "keep")) * time.Minute),
			}
			stored := rapid.Bool().Draw(t, "stored")
			_, taken := b.put(now, &r, stored)
			if want, _ := n.put(now, r, stored); taken != want {
				t.Fatalf("taken: got %v, want %v", taken, want)
			}
			for _, tenant := range tenants {
				for id := range 6 {
					got, want := b.find(now, tenant, mark(id)), n.find(now, tenant, mark(id))
					if (got == nil) != (want == nil) || got != nil && got.pin != *want {
						t.Fatalf("%s finds %d at %v, want %v", tenant, id, got, want)
					}
				}
			}
		}
	})
}

// A flood of ids displaces the flood: nothing of a tenant that has no more.
func TestFloodDisplacesTheFlood(t *testing.T) {
	b := newBook(1000, 1500)
	for id := range 500 {
		b.put(noon, &Record{Mark: mark(id), Tenant: "quiet", Pin: route.Pin{Provider: "p"}, Until: noon.Add(time.Hour)}, false)
	}
	for id := range 100_000 {
		b.put(noon, &Record{Mark: mark(1000 + id), Tenant: "loud", Pin: route.Pin{Provider: "p"}, Until: noon.Add(time.Hour)}, false)
	}
	for id := range 500 {
		if b.find(noon, "quiet", mark(id)) == nil {
			t.Fatalf("id %d of the quiet tenant is forgotten", id)
		}
	}
	if n := b.shelves["loud"].n; n != 1000 || b.find(noon, "loud", mark(1000+99_999)) == nil {
		t.Errorf("the loud tenant has %d, want 1000 and its last", n)
	}
	for i := range 400 { // tenants that come later have room, too, at the cost of those that have most
		b.put(noon, &Record{Mark: mark(i), Tenant: sluice.TenantID(fmt.Sprint("new", i)), Pin: route.Pin{Provider: "q"}, Until: noon.Add(time.Hour)}, false)
	}
	if b.len() != 1500 || b.shelves["quiet"].n != 500 || b.shelves["new0"] == nil || b.shelves["loud"].n != 600 {
		t.Errorf("%d in all, quiet has %d, loud %d", b.len(), b.shelves["quiet"].n, b.shelves["loud"].n)
	}
}
