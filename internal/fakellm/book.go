package fakellm

import (
	"context"
	"sync"
	"time"

	"sluice"
)

// How a request ended, in the book.
const (
	EndCompleted = "completed" // answered to its end
	EndCancelled = "cancelled" // the client left
	EndFailed    = "failed"    // a fault ended it after work had begun
	EndRefused   = "refused"   // an error answer, no work
)

// Served is one request in the provider's own book.
type Served struct {
	ID      string        `json:"id"` // as in the x-request-id or request-id header
	Model   string        `json:"model"`
	Surface string        `json:"surface"`
	Faults  string        `json:"faults,omitempty"`
	End     string        `json:"end"` // completed, cancelled, failed, refused; empty while it runs
	Status  int           `json:"status"`
	Stream  bool          `json:"stream"`
	Batch   bool          `json:"batch,omitempty"` // a batch's, at the batch's price
	Input   sluice.Tokens `json:"input"`           // cached and written included
	Cached  sluice.Tokens `json:"cached"`          // read from the prefix cache
	Written sluice.Tokens `json:"written"`         // written to it
	Output  sluice.Tokens `json:"output"`          // reasoning included; of a stream that was cut, what its events carried

	Reasoning sluice.Tokens `json:"reasoning"`
	Generated sluice.Tokens `json:"generated"` // by the engine until the end or the cut, at least Output unless the model runs on
	Sent      sluice.Tokens `json:"sent"`      // the part of it that was written to the client
	Reported  bool          `json:"reported"`  // the client was sent true final usage
	Billed    bool          `json:"billed"`    // Input and Output are on the invoice

	At    time.Time  `json:"at"`
	First *time.Time `json:"first,omitempty"` // first content written
	Left  *time.Time `json:"left,omitempty"`  // the client was seen to leave
	Done  *time.Time `json:"done,omitempty"`
}

// Total sums requests that have ended. Input and Output count what is billed.
type Total struct {
	Requests  int64         `json:"requests"`
	Completed int64         `json:"completed"`
	Cancelled int64         `json:"cancelled"`
	Failed    int64         `json:"failed"`
	Refused   int64         `json:"refused"`
	Running   int64         `json:"running"`
	Input     sluice.Tokens `json:"input"`
	Cached    sluice.Tokens `json:"cached"`
	Written   sluice.Tokens `json:"written"`
	Output    sluice.Tokens `json:"output"`
	Reasoning sluice.Tokens `json:"reasoning"`
	// The same over requests whose true usage the client was sent.
	Reported       int64         `json:"reported"`
	ReportedInput  sluice.Tokens `json:"reported_input"`
	ReportedOutput sluice.Tokens `json:"reported_output"`
}

func (t *Total) add(s *Served) {
	t.Requests++
	switch s.End {
	case EndCompleted:
		t.Completed++
	case EndCancelled:
		t.Cancelled++
	case EndFailed:
		t.Failed++
	case EndRefused:
		t.Refused++
	}
	if !s.Billed {
		return
	}
	t.Input += s.Input
	t.Cached += s.Cached
	t.Written += s.Written
	t.Output += s.Output
	t.Reasoning += s.Reasoning
	if s.Reported {
		t.Reported++
		t.ReportedInput += s.Input
		t.ReportedOutput += s.Output
	}
}

// otherModels collects the totals of models that are not the provider's own, so
// that invented names cannot grow the book.
const otherModels = "(other)"

// book keeps the newest requests and totals of all.
type book struct {
	mu      sync.Mutex
	ring    []Served // finished, oldest at next once full
	next    int
	most    int
	running map[string]*Served
	all     Total
	models  map[string]*Total
	known   func(string) bool
	changed chan struct{} // closed and replaced at every change; nil while nobody waits
}

func newBook(most int, known func(string) bool) *book {
	if most <= 0 {
		most = 16_384
	}
	return &book{most: most, running: map[string]*Served{}, models: map[string]*Total{}, known: known}
}

// open enters a request that has begun.
func (b *book) open(s Served) *Served {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[s.ID] = &s
	b.notify()
	return &s
}

// notify wakes those that wait for a change. Called with mu held.
func (b *book) notify() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// await blocks until ok is true of the totals.
func (b *book) await(ctx context.Context, ok func(Total) bool) error {
	for {
		b.mu.Lock()
		t := b.all
		t.Running = int64(len(b.running))
		if ok(t) {
			b.mu.Unlock()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// update changes an open entry.
func (b *book) update(s *Served, f func(*Served)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(s)
}

// close moves an entry to the finished ones.
func (b *book) close(s *Served) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.notify()
	now := time.Now()
	s.Done = &now
	delete(b.running, s.ID)
	b.all.add(s)
	b.total(s.Model).add(s)
	if len(b.ring) < b.most {
		b.ring = append(b.ring, *s)
		return
	}
	b.ring[b.next] = *s
	b.next = (b.next + 1) % b.most
}

func (b *book) total(model string) *Total {
	if !b.known(model) {
		model = otherModels
	}
	t, ok := b.models[model]
	if !ok {
		t = &Total{}
		b.models[model] = t
	}
	return t
}

// Filter chooses requests of the book. The zero value chooses all.
type Filter struct {
	Model string    // base name, without faults
	End   string    // one of the End constants
	Since time.Time // by arrival
	ID    string
	Limit int // newest; 0 means all that are kept
}

func (f Filter) takes(s *Served) bool {
	return (f.Model == "" || f.Model == s.Model) && (f.End == "" || f.End == s.End) &&
		(f.ID == "" || f.ID == s.ID) && !s.At.Before(f.Since)
}

// Account is what the book says. Totals cover every request since the start,
// Served only those kept, oldest first.
type Account struct {
	Total  Total            `json:"total"`
	Models map[string]Total `json:"models"`
	Served []Served         `json:"served"`
	Kept   int              `json:"kept"` // finished requests that the book still has one by one
}

func (b *book) account(f Filter) Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := Account{Total: b.all, Models: map[string]Total{}, Kept: len(b.ring), Served: []Served{}}
	a.Total.Running = int64(len(b.running))
	for name, t := range b.models {
		a.Models[name] = *t
	}
	for i := range b.ring {
		s := b.ring[(b.next+i)%len(b.ring)]
		if f.takes(&s) {
			a.Served = append(a.Served, s)
		}
	}
	if f.Limit > 0 && len(a.Served) > f.Limit {
		a.Served = a.Served[len(a.Served)-f.Limit:]
	}
	return a
}
