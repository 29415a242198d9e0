package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sluice"
)

// Dialect is the API that the replay speaks.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"
)

// Options configure a run. Rows, Target and Transport are required.
type Options struct {
	Rows   []Row  // in order of time
	Target string // base URL, with or without /v1
	// Keys by client; the client "*" stands for those without a key of their
	// own. Pool is used round robin, by client, where neither has one.
	Keys map[string]sluice.Secret
	Pool []sluice.Secret

	Speed       float64 // trace seconds per second; 0 means 1
	Model       string  // of rows that name none; empty means sim-small
	Dialect     Dialect // empty means OpenAI
	Whole       bool    // stream nothing
	Abort       float64 // share of streams that the client leaves, 0 to 1
	AbortWithin int     // after 1 to this many content events; 0 means 20
	Seed        uint64
	MaxInput    int64 // rows are cut to this; 0 means no bound
	MaxOutput   int64 // likewise

	NoInstruction bool          // do not tell a scripted provider how many tokens to make
	Timeout       time.Duration // of one request; 0 means 10 minutes
	MaxInFlight   int           // beyond it a row is overrun, not delayed; 0 means 4,096

	// Transport sends the requests: app passes one that egress made. It is used
	// as it is, so that no redirect is followed and nothing is sent twice.
	Transport http.RoundTripper

	Progress io.Writer     // a line per Interval; nil for none
	Interval time.Duration // 0 means 5 s

	// Ledger and Backends are compared after the run, when both are given.
	Ledger   Ledger
	Backends []Backend
	Patience time.Duration // how long the books may take to agree; 0 means 10 s
}

func (o *Options) defaults() error {
	switch {
	case o.Transport == nil:
		return errors.New("replay has no transport")
	case len(o.Rows) == 0:
		return errors.New("replay has no rows")
	case o.Speed < 0 || o.Abort < 0 || o.Abort > 1 || o.AbortWithin < 0:
		return errors.New("speed and abort-within must be positive, the share of aborts from 0 to 1")
	}
	u, err := url.Parse(o.Target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("target %q: write a URL such as http://127.0.0.1:8080", o.Target)
	}
	o.Target = strings.TrimSuffix(strings.TrimSuffix(o.Target, "/"), "/v1")
	set(&o.Speed, 1)
	set(&o.Model, "sim-small")
	set(&o.Dialect, OpenAI)
	set(&o.AbortWithin, 20)
	set(&o.Timeout, 10*time.Minute)
	set(&o.MaxInFlight, 4096)
	set(&o.Interval, 5*time.Second)
	set(&o.Patience, 10*time.Second)
	if o.Dialect != OpenAI && o.Dialect != Anthropic {
		return fmt.Errorf("dialect %q: use openai or anthropic", o.Dialect)
	}
	return nil
}

// set gives an option that is not set its default.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// driver is one run under way.
type driver struct {
	o       Options
	start   time.Time
	slots   chan struct{} // one element per request in flight
	wg      sync.WaitGroup
	tally   tally
	dice    dice // of the sending loop alone
	clients map[string]int
}

// Run sends the rows and reports what came back. It fails only on options that
// make no sense; a context that ends early cuts the run short, and the report
// says so.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	d := &driver{
		o: o, start: time.Now(), slots: make(chan struct{}, o.MaxInFlight), dice: newDice(o.Seed, 3), clients: map[string]int{},
	}
	d.tally.init()
	talk, hush := context.WithCancel(ctx)
	var progress sync.WaitGroup
	if o.Progress != nil {
		span := o.Rows[len(o.Rows)-1].At
		fmt.Fprintf(o.Progress, "%d requests, %s of trace in %s, to %s\n",
			len(o.Rows), span.Round(time.Second), time.Duration(float64(span)/o.Speed).Round(time.Second), o.Target)
		progress.Go(func() { d.progress(talk) })
	}
	cut := d.send(ctx)
	d.wg.Wait()
	hush()
	progress.Wait()
	r := d.tally.report(&d.o, time.Since(d.start))
	r.Cut = cut
	if o.Ledger != nil && len(o.Backends) > 0 {
		r.Books, r.BooksError = compare(ctx, &d.o, d.start)
	}
	return r, nil
}

// send starts every row at its time. It waits for the clock alone.
func (d *driver) send(ctx context.Context) (cut bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range d.o.Rows {
		row := d.o.Rows[i]
		due := d.start.Add(time.Duration(float64(row.At) / d.o.Speed))
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return true
			}
		} else if ctx.Err() != nil {
			return true
		}
		d.shape(&row)
		key := d.key(row.Client)
		select {
		case d.slots <- struct{}{}:
		default:
			d.tally.overrun()
			continue
		}
		d.tally.sent(time.Since(due), &row)
		seed := mix(d.o.Seed ^ uint64(i)<<1)
		d.wg.Go(func() {
			defer func() { <-d.slots }()
			d.tally.ended(d.call(ctx, &row, key, due, seed))
		})
	}
	return false
}

// shape applies the run's bounds and draws whether the client will leave.
func (d *driver) shape(row *Row) {
	if d.o.MaxInput > 0 {
		row.Input = min(row.Input, d.o.MaxInput)
	}
	if d.o.MaxOutput > 0 {
		row.Output = min(row.Output, d.o.MaxOutput)
	}
	row.Whole = row.Whole || d.o.Whole
	if d.o.Abort > 0 && d.dice.Float64() < d.o.Abort && row.CancelAfter == 0 {
		row.CancelAfter = 1 + d.dice.IntN(d.o.AbortWithin)
	}
}

// key is the client's credential.
func (d *driver) key(client string) sluice.Secret {
	if k, ok := d.o.Keys[client]; ok {
		return k
	}
	if k, ok := d.o.Keys["*"]; ok {
		return k
	}
	if len(d.o.Pool) == 0 {
		return sluice.Secret{}
	}
	n, ok := d.clients[client]
	if !ok || client == "" { // a trace without clients spreads its rows
		n = d.clients["\x00next"]
		d.clients["\x00next"]++
		if client != "" && len(d.clients) < 1<<20 {
			d.clients[client] = n
		}
	}
	return d.o.Pool[n%len(d.o.Pool)]
}

func (d *driver) progress(ctx context.Context) {
	t := time.NewTicker(d.o.Interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			fmt.Fprintln(d.o.Progress, d.tally.line(time.Since(d.start)))
		case <-ctx.Done():
			return
		}
	}
}
