package versions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"sluice"
	"sluice/test/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a store in memory that can be down, and that can take a version and not say
// so.
type shelf struct {
	mu     sync.Mutex
	down   bool
	silent bool // it takes what it is given and fails all the same
	kept   []Version
}

var errDown = errors.New("the store is down")

func (s *shelf) set(down, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.silent = down, silent
}

func (s *shelf) AddVersion(_ context.Context, v Version) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return 0, errDown
	}
	i := slices.IndexFunc(s.kept, func(k Version) bool { return k.ID == v.ID })
	if i < 0 {
		i = len(s.kept)
		v.Number = int64(i + 1)
		s.kept = append(s.kept, v)
	}
	if s.silent {
		return 0, errDown
	}
	return s.kept[i].Number, nil
}

func (s *shelf) ListVersions(_ context.Context, before int64, limit int) (out []Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	for _, v := range slices.Backward(s.kept) {
		if (before == 0 || v.Number < before) && len(out) < limit {
			v.Text = ""
			out = append(out, v)
		}
	}
	return out, nil
}

func (s *shelf) FindVersion(_ context.Context, r Ref) (Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return Version{}, errDown
	}
	for _, v := range slices.Backward(s.kept) {
		if r.Names(&v) {
			return v, nil
		}
	}
	return Version{}, Missing(r)
}

func numbered(n int) Version {
	return Version{ID: fmt.Sprint("id", n), Hash: fmt.Sprintf("%012x", 0xabcd00+n), Source: File, Content: Content{Text: fmt.Sprint("text ", n)}}
}

// While the store is down changes are remembered, the one before can be gone back to,
// and once it is back everything is recorded, in order, once.
func TestHistoryOutlastsTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &shelf{}
		h := New(Options{Store: s})
		h.Start(t.Context())
		defer h.Close()
		if v := h.Add(t.Context(), numbered(1)); v.Number != 1 {
			t.Errorf("version 1 has number %d", v.Number)
		}
		s.set(true, false)
		for i := 2; i <= 4; i++ {
			if v := h.Add(t.Context(), numbered(i)); v.Number != 0 {
				t.Errorf("a store that is down gave version %d number %d", i, v.Number)
			}
		}
		if v, err := h.Previous(t.Context()); err != nil || v.Text != "text 3" {
			t.Errorf("before the last: got %q, %v", v.Text, err)
		}
		if page, err := h.List(t.Context(), 0, 10); len(page) != 4 || err == nil || page[0].Hash != numbered(4).Hash || page[0].Text != "" {
			t.Errorf("got %v, %v", page, err)
		}
		s.set(false, true) // back, but what it says is lost on the way
		time.Sleep(3*time.Second + defaultRetry/2)
		s.set(false, false)
		time.Sleep(defaultRetry)
		if v, _ := h.Current(); v.Number != 4 {
			t.Errorf("a second after the store is back the last version has number %d", v.Number)
		}
		page, err := h.List(t.Context(), 0, 10)
		if err != nil || len(page) != 4 {
			t.Fatalf("got %d versions, %v", len(page), err)
		}
		for i, v := range page {
			if want := numbered(4 - i); v.ID != want.ID || v.Number != int64(4-i) {
				t.Errorf("place %d has %s with number %d", i, v.ID, v.Number)
			}
		}
	})
}

// A restart knows the version before from the store.
func TestPreviousOfAnotherProcess(t *testing.T) {
	s := &shelf{}
	for i := 1; i <= 3; i++ {
		v := numbered(i)
		if i == 3 {
			v.Hash = numbered(2).Hash // the same once more, such as by a restart in between
		}
		if _, err := s.AddVersion(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	h := New(Options{Store: s})
	if _, err := h.Previous(t.Context()); sluice.AsError(err).Kind != sluice.KindNotFound {
		t.Errorf("before anything: %v", err)
	}
	again := numbered(2)
	h.Add(t.Context(), again)
	if v, err := h.Previous(t.Context()); err != nil || v.Text != "text 1" {
		t.Errorf("got %q, %v", v.Text, err)
	}
	if v, err := h.Find(t.Context(), Ref{Hash: "000000abcd01"}); err != nil || v.Number != 1 {
		t.Errorf("got %v, %v", v.Number, err)
	}
}

// Memory is bounded, and the version in force and the one before are always there.
func TestHistoryIsBounded(t *testing.T) {
	h := New(Options{Store: &shelf{down: true}})
	for i := range 3 * maxRemembered {
		h.Add(t.Context(), numbered(i))
	}
	if n := len(h.known); n != maxRemembered {
		t.Errorf("it remembers %d versions", n)
	}
	for i := range 4 {
		v := numbered(1000 + i)
		v.Text = strings.Repeat("x", maxHeldBytes/2+1)
		h.Add(t.Context(), v)
	}
	if n := len(h.known); n != 2 {
		t.Errorf("it remembers %d versions of half the bound", n)
	}
}

func TestParseRef(t *testing.T) {
	for s, want := range map[string]Ref{
		"7": {Number: 7}, "123456": {Number: 123456}, "abcdef": {Hash: "abcdef"}, "012345678901": {Hash: "012345678901"}, "12ab34": {Hash: "12ab34"},
		"": {}, "0": {}, "-1": {}, "abc": {}, "ABCDEF": {}, "0123456789012": {}, "latest": {},
	} {
		got, err := ParseRef(s)
		if got != want || (err == nil) != (want != Ref{}) {
			t.Errorf("%q: got %+v, %v, want %+v", s, got, err, want)
		}
	}
}

// A hold comes back as it was written, and is gone when it is forgotten.
func TestHeldRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		v := numbered(rapid.IntRange(0, 1000).Draw(t, "n"))
		v.At = time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "at")).UTC()
		v.Text, v.Reason = rapid.String().Draw(t, "text"), rapid.String().Draw(t, "reason")
		v.Text, v.Reason = strings.ToValidUTF8(v.Text, ""), strings.ToValidUTF8(v.Reason, "")
		want := Held{FileHash: "aabbccddeeff", Version: v}
		if err := want.Keep(dir); err != nil {
			t.Fatal(err)
		}
		got, err := ReadHeld(dir)
		if err != nil || *got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
	for range 2 {
		if err := Forget(dir); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := ReadHeld(dir); h != nil || err != nil {
		t.Errorf("got %v, %v", h, err)
	}
}
