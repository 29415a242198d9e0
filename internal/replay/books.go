package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice"
)

// LedgerEntry is one attempt as the gateway charged it.
type LedgerEntry struct {
	Provider string // the provider's request id; empty when no answer of the backend told it
	Source   sluice.UsageSource
	Input    sluice.Tokens // cached included
	Output   sluice.Tokens // reasoning included
}

// LedgerBook is what the gateway's ledger says of a run.
type LedgerBook struct {
	Entries []LedgerEntry
	Open    int64 // reservations not yet ended
}

// Ledger reads the gateway's ledger from a time on.
type Ledger func(ctx context.Context, since time.Time) (LedgerBook, error)

// BackendEntry is one request as a backend served it.
type BackendEntry struct {
	ID     string // the backend's request id
	Billed bool
	Input  sluice.Tokens
	Output sluice.Tokens
}

// BackendBook is what a backend says of a run.
type BackendBook struct {
	Entries []BackendEntry
	Running int64
}

// Backend reads a backend's book from a time on.
type Backend func(ctx context.Context, since time.Time) (BackendBook, error)

// Books compare what was charged with what was served.
type Books struct {
	Sources map[string]SourceBook `json:"sources"`  // by usage source, of entries that a backend knows
	Unnamed SourceBook            `json:"unnamed"`  // charged entries without a provider's id, against billed requests without an entry
	Open    int64                 `json:"open"`     // reservations that have not ended; must be 0
	Running int64                 `json:"running"`  // requests that backends have not ended
	Unknown int64                 `json:"unknown"`  // charged, and known to no backend; must be 0
	Missing int64                 `json:"missing"`  // billed by a backend, absent from the ledger even as unnamed; must be 0
	Twice   int64                 `json:"twice"`    // entries beyond the first for one backend request; must be 0
	Exact   bool                  `json:"exact"`    // every reported entry equals its backend's
	Within  bool                  `json:"within"`   // the sums of all others are within 2 %, or two tokens an entry, in input and output; of the unnamed in input
	Balance bool                  `json:"balanced"` // all of the above hold
}

// SourceBook compares the entries of one usage source.
type SourceBook struct {
	Entries        int64 `json:"entries"`
	Exact          int64 `json:"exact"`  // equal to the backend's in input and output
	Within         int64 `json:"within"` // not equal, but within 2 % or two tokens in both
	Input          int64 `json:"input"`
	BackendInput   int64 `json:"backend_input"`
	Output         int64 `json:"output"`
	BackendOutput  int64 `json:"backend_output"`
	InputPermille  int64 `json:"input_off_permille"`  // ledger against backend, signed
	OutputPermille int64 `json:"output_off_permille"` // likewise
}

// Reconcile matches a ledger with the backends' books. A call that was abandoned
// before its headers came has no provider's id in the ledger: such entries are
// matched in number and in the sum of their input. Their output nobody has seen;
// it is shown, not judged.
func Reconcile(l LedgerBook, backends ...BackendBook) *Books {
	b := &Books{Sources: map[string]SourceBook{}, Open: l.Open}
	served := map[string]*BackendEntry{}
	for _, book := range backends {
		b.Running += book.Running
		for i := range book.Entries {
			served[book.Entries[i].ID] = &book.Entries[i]
		}
	}
	seen := map[string]bool{}
	for _, e := range l.Entries {
		if e.Provider == "" {
			if e.Source != sluice.UsageNone {
				b.Unnamed.Entries++
				b.Unnamed.Input += int64(e.Input)
				b.Unnamed.Output += int64(e.Output)
			}
			continue
		}
		at, ok := served[e.Provider]
		switch {
		case !ok:
			b.Unknown++
			continue
		case seen[e.Provider]:
			b.Twice++
			continue
		}
		seen[e.Provider] = true
		b.Sources[e.Source.String()] = b.Sources[e.Source.String()].with(e, *at)
	}
	for id, e := range served {
		if e.Billed && !seen[id] {
			b.Missing++
			b.Unnamed.BackendInput += int64(e.Input)
			b.Unnamed.BackendOutput += int64(e.Output)
		}
	}
	b.Unnamed.InputPermille = permille(b.Unnamed.Input, b.Unnamed.BackendInput)
	b.Unnamed.OutputPermille = permille(b.Unnamed.Output, b.Unnamed.BackendOutput)
	b.Missing -= b.Unnamed.Entries
	if b.Missing < 0 { // charged, and on nobody's invoice
		b.Unknown -= b.Missing
		b.Missing = 0
	}
	b.judge()
	return b
}

// The figures that are not reported may be off by tolerance, in thousandths, or by
// allowance, in tokens an entry, which is more where a sample is small: of an answer
// cut after five tokens one is 20 %.
const (
	tolerance = 20
	allowance = 2
)

func (s SourceBook) with(e LedgerEntry, at BackendEntry) SourceBook {
	if !at.Billed { // an error answer: the backend took nothing
		at.Input, at.Output = 0, 0
	}
	s.Entries++
	s.Input += int64(e.Input)
	s.Output += int64(e.Output)
	s.BackendInput += int64(at.Input)
	s.BackendOutput += int64(at.Output)
	switch {
	case e.Input == at.Input && e.Output == at.Output:
		s.Exact++
	case near(int64(e.Input), int64(at.Input), 1) && near(int64(e.Output), int64(at.Output), 1):
		s.Within++
	}
	s.InputPermille = permille(s.Input, s.BackendInput)
	s.OutputPermille = permille(s.Output, s.BackendOutput)
	return s
}

// near compares sums over entries.
func near(got, want, entries int64) bool {
	off := max(got-want, want-got)
	return off*1000 <= tolerance*max(want, 0) || off <= allowance*entries
}

// permille is how far got is from want, in thousandths of want.
func permille(got, want int64) int64 {
	if want == 0 {
		if got == 0 {
			return 0
		}
		return 1000
	}
	return (got - want) * 1000 / want
}

// judge sums up. The sources that are not reported are judged together: a run
// has few of each.
func (b *Books) judge() {
	reported := b.Sources[sluice.UsageReported.String()]
	b.Exact = reported.Exact == reported.Entries
	var rest SourceBook
	for name, s := range b.Sources {
		if name == sluice.UsageReported.String() {
			continue
		}
		rest.Entries += s.Entries
		rest.Input += s.Input
		rest.Output += s.Output
		rest.BackendInput += s.BackendInput
		rest.BackendOutput += s.BackendOutput
	}
	b.Within = near(rest.Input, rest.BackendInput, rest.Entries) && near(rest.Output, rest.BackendOutput, rest.Entries) &&
		near(b.Unnamed.Input, b.Unnamed.BackendInput, b.Unnamed.Entries)
	b.Balance = b.Exact && b.Within && b.Open == 0 && b.Running == 0 && b.Unknown == 0 && b.Missing == 0 && b.Twice == 0
}

func (b *Books) write(w io.Writer) {
	for _, name := range []string{"reported", "drained", "counted", "estimated", "estimated_time", "cached", "none", "unnamed"} {
		s := b.Sources[name]
		if name == "unnamed" {
			s = b.Unnamed
		}
		if s == (SourceBook{}) {
			continue
		}
		fmt.Fprintf(w, "books, %s\t%d entries, %d exact, %d near; input %d against %d (%+.1f %%), output %d against %d (%+.1f %%)\n",
			name, s.Entries, s.Exact, s.Within, s.Input, s.BackendInput, float64(s.InputPermille)/10,
			s.Output, s.BackendOutput, float64(s.OutputPermille)/10)
	}
	verdict := "do not balance"
	if b.Balance {
		verdict = "balance"
	}
	fmt.Fprintf(w, "books\t%s: %d open holds, %d running, %d unknown, %d missing, %d twice\n", verdict, b.Open, b.Running, b.Unknown, b.Missing, b.Twice)
}

// compare reads the books until nothing is open and nothing missing, or the
// patience ends: the last requests settle a moment after their clients have the
// answer.
func compare(ctx context.Context, o *Options, since time.Time) (*Books, string) {
	deadline := time.Now().Add(o.Patience)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, "the run was stopped before the books were read"
		}
		b, err := readBooks(ctx, o, since)
		if err == nil && (b.Open == 0 && b.Running == 0 && b.Missing == 0 && b.Unknown == 0) {
			return b, ""
		}
		if time.Now().After(deadline) {
			if err != nil {
				return nil, err.Error()
			}
			return b, ""
		}
		pause.Reset(250 * time.Millisecond)
	}
}

func readBooks(ctx context.Context, o *Options, since time.Time) (*Books, error) {
	l, err := o.Ledger(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var backends []BackendBook
	for _, read := range o.Backends {
		b, err := read(ctx, since)
		if err != nil {
			return nil, fmt.Errorf("read a backend's book: %w", err)
		}
		backends = append(backends, b)
	}
	return Reconcile(l, backends...), nil
}

// bookTimeout bounds the reading of one backend's book.
const bookTimeout = 30 * time.Second

// FakeLLM reads the book of a scripted provider at a base URL. It fails when
// the provider no longer has every request of the run one by one.
func FakeLLM(base string, transport http.RoundTripper) Backend {
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	return func(ctx context.Context, since time.Time) (BackendBook, error) {
		u := base + "/fakellm/served?since=" + url.QueryEscape(since.UTC().Format(time.RFC3339Nano))
		ctx, cancel := context.WithTimeout(ctx, bookTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return BackendBook{}, err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return BackendBook{}, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return BackendBook{}, fmt.Errorf("%s answers %s", base, resp.Status)
		}
		var book struct {
			Total struct {
				Requests int64 `json:"requests"`
				Running  int64 `json:"running"`
			} `json:"total"`
			Kept   int64 `json:"kept"`
			Served []struct {
				ID     string        `json:"id"`
				Billed bool          `json:"billed"`
				Input  sluice.Tokens `json:"input"`
				Output sluice.Tokens `json:"output"`
			} `json:"served"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&book); err != nil {
			return BackendBook{}, err
		}
		if int64(len(book.Served)) == book.Kept && book.Kept < book.Total.Requests {
			return BackendBook{}, errors.New("the provider's book has dropped requests of this run: start it with a larger one")
		}
		out := BackendBook{Running: book.Total.Running}
		for _, s := range book.Served {
			out.Entries = append(out.Entries, BackendEntry{s.ID, s.Billed, s.Input, s.Output})
		}
		return out, nil
	}
}
