package handover_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/handover"
	"sluice/internal/wire"
)

// TestMadeUnknown kills the process after the provider has made a batch and before it is
// known by name: the next finds it there, and nothing is made twice.
func TestMadeUnknown(t *testing.T) {
	for _, d := range []wire.Dialect{wire.OpenAI, wire.Anthropic} {
		t.Run(string(d), func(t *testing.T) {
			at(t, d, "", func(t *testing.T, h *house) {
				p := h.start()
				p.dies = make(chan struct{})
				id := p.submit(20, 24*time.Hour)
				time.Sleep(10 * time.Second)
				p.stop(true)
				q := h.start()
				j := h.ended(id, 10*time.Minute)
				q.stop(false)
				if j.Counts.Succeeded != 20 || q.how[handover.Made] != 1 || q.done != [2]int{0, 20} || h.made() != 1 {
					t.Errorf("got %+v, batches %v, lines %v, of %d batches; want 20 of the one that was there", j.Counts, q.how, q.done, h.made())
				}
				h.books(j, 20, 20, q)
			})
		})
	}
}

// TestAnswersAreOwed kills the process while its provider has all lines. To the next one
// their budget is spent, of all things on what was lost with it: that is no reason to leave
// the answers there.
func TestAnswersAreOwed(t *testing.T) {
	at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
		p := h.start()
		p.dies = make(chan struct{})
		id := p.submit(20, 24*time.Hour)
		time.Sleep(10 * time.Second)
		p.stop(true)
		h.limits = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1}, {Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 1}}
		q := h.start()
		j := h.ended(id, 10*time.Minute)
		q.stop(false)
		if j.Counts.Succeeded != 20 || q.done != [2]int{0, 20} || h.made() != 1 {
			t.Errorf("got %+v, lines %v, of %d batches; want 20 of the one that was there", j.Counts, q.done, h.made())
		}
		h.books(j, 20, 20, q)
	})
}

// TestNotMade has a process die that was about to make a batch: once it is sure that the
// provider has none it is made anew.
func TestNotMade(t *testing.T) {
	at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
		lost := true
		h.around = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if lost && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") {
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			})
		}
		p := h.start()
		p.dies = make(chan struct{})
		id := p.submit(20, 24*time.Hour)
		time.Sleep(10 * time.Second)
		p.stop(true)
		lost = false
		q := h.start()
		j := h.ended(id, 10*time.Minute)
		time.Sleep(90 * time.Second)
		q.stop(false)
		h.tidy()
		if n := h.times("DELETE files"); n != 3 {
			t.Errorf("%d files were deleted, want the input of the one that was not made, and two of the other", n)
		}
		if j.Counts.Succeeded != 20 || q.how[handover.Lost] != 1 || q.how[handover.Made] != 1 || q.done != [2]int{0, 20} || h.made() != 1 {
			t.Errorf("got %+v, batches %v, lines %v, of %d batches; want 20 of a new one", j.Counts, q.how, q.done, h.made())
		}
		h.books(j, 20, 20, q)
	})
}

// TestMadeUnheard loses the answer of a provider that has made a batch: it is found there.
func TestMadeUnheard(t *testing.T) {
	at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
		h.around = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") {
					next.ServeHTTP(httptest.NewRecorder(), r)
					http.Error(w, "so", http.StatusBadGateway)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		p := h.start()
		j := h.ended(p.submit(20, 24*time.Hour), 10*time.Minute)
		p.stop(false)
		if j.Counts.Succeeded != 20 || p.how[handover.Made] != 1 || p.done != [2]int{0, 20} || h.made() != 1 {
			t.Errorf("got %+v, batches %v, lines %v, of %d batches", j.Counts, p.how, p.done, h.made())
		}
		h.books(j, 20, 20, p)
	})
}

// tidy checks that nothing is left to be put in order.
func (h *house) tidy() {
	h.t.Helper()
	if left, err := h.db.HandedOut(h.t.Context(), time.Now().Add(time.Hour), 10); len(left) > 0 || err != nil {
		h.t.Errorf("%v is not in order, %v", left, err)
	}
}

// TestTidied has nothing stay at the provider once all lines have their end, whoever made it:
// files are deleted, and not before, and what still runs is cancelled.
func TestTidied(t *testing.T) {
	for _, tt := range []struct {
		d       wire.Dialect
		deletes string
		times   int
	}{{wire.OpenAI, "DELETE files", 2}, {wire.Anthropic, "DELETE messages batches", 1}} {
		t.Run(string(tt.d), func(t *testing.T) {
			at(t, tt.d, "", func(t *testing.T, h *house) {
				p := h.start()
				id := p.submit(20, 24*time.Hour)
				h.ended(id, 10*time.Minute)
				if n := h.times(tt.deletes); n > 0 {
					t.Errorf("%d files were deleted at once", n)
				}
				p.stop(true)
				q := h.start()
				time.Sleep(90 * time.Second)
				if n := h.times(tt.deletes); n != tt.times {
					t.Errorf("%d files were deleted, want %d", n, tt.times)
				}
				q.stop(false)
				h.tidy()
			})
		})
	}
}

// TestTidiedRunning cancels a batch that nobody waits for any more.
func TestTidiedRunning(t *testing.T) {
	at(t, wire.OpenAI, "hang-first", func(t *testing.T, h *house) {
		p := h.start()
		id := p.submit(5, 24*time.Hour)
		time.Sleep(10 * time.Second)
		p.stop(true)
		n, _, err := h.db.EndLines(t.Context(), id, time.Now().Add(time.Hour), 3)
		if n != 0 || err != nil {
			t.Fatal(n, err)
		}
		q := h.start()
		time.Sleep(5 * time.Minute)
		q.stop(false)
		h.tidy()
		if c, d := h.times("POST batches cancel"), h.times("DELETE files"); c != 1 || d != 2 {
			t.Errorf("%d were cancelled and %d files deleted, want 1 and 2", c, d)
		}
	})
}

// TestUndeletable gives up deleting at a provider that deletes nothing.
func TestUndeletable(t *testing.T) {
	at(t, wire.OpenAI, "", func(t *testing.T, h *house) {
		deletes := 0
		h.around = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					deletes++
					http.Error(w, "so", http.StatusMethodNotAllowed)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		p := h.start()
		h.ended(p.submit(5, 24*time.Hour), 10*time.Minute)
		time.Sleep(90 * time.Second)
		p.stop(false)
		h.tidy()
		if deletes != 2 {
			t.Errorf("it was asked %d times to delete something, want 2", deletes)
		}
	})
}
