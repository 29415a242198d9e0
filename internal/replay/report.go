package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"
)

// Report is what a run found.
type Report struct {
	Target  string  `json:"target"`
	Rows    int     `json:"rows"`
	Speed   float64 `json:"speed"`
	Seconds float64 `json:"seconds"`       // from the first send to the last end
	Cut     bool    `json:"cut,omitempty"` // it was stopped before all rows were sent

	Sent      int64 `json:"sent"`
	Overrun   int64 `json:"overrun"` // due, but not sent: too many were in flight
	Completed int64 `json:"completed"`
	Cancelled int64 `json:"cancelled"` // the replay left
	Rejected  int64 `json:"rejected"`
	Failed    int64 `json:"failed"`
	Lost      int64 `json:"lost"` // sent and never ended; must be 0

	Statuses map[string]int64 `json:"statuses"` // by HTTP status; "none" without an answer
	Reasons  map[string]int64 `json:"reasons"`  // of all that did not complete

	Latency Quantiles `json:"latency"` // of the completed, from the intended start
	TTFT    Quantiles `json:"ttft"`    // to the first content, from the intended start
	Lag     Quantiles `json:"lag"`     // how late the replay itself sent

	Asked Volume `json:"asked"` // what the rows sent wanted
	Told  Volume `json:"told"`  // what usage the clients were given

	Books      *Books `json:"books,omitempty"`
	BooksError string `json:"books_error,omitempty"` // why there are none, though they were wanted
}

// Volume is requests and their tokens.
type Volume struct {
	Requests int64 `json:"requests"`
	Input    int64 `json:"input"`
	Output   int64 `json:"output"`
}

// maxReasons bounds the words that a report keeps.
const maxReasons = 64

// tally collects results. It is guarded by mu.
type tally struct {
	mu                 sync.Mutex
	r                  Report
	ends               int64
	latency, ttft, lag *histogram
}

func (t *tally) init() {
	t.r.Statuses, t.r.Reasons = map[string]int64{}, map[string]int64{}
	t.latency, t.ttft, t.lag = new(histogram), new(histogram), new(histogram)
}

func (t *tally) overrun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Overrun++
}

func (t *tally) sent(late time.Duration, row *Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Sent++
	t.lag.add(late)
	t.r.Asked.Requests++
	t.r.Asked.Input += row.Input
	t.r.Asked.Output += row.Output
}

func (t *tally) ended(r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends++
	switch r.outcome {
	case completed:
		t.r.Completed++
		t.latency.add(r.latency)
	case cancelled:
		t.r.Cancelled++
	case rejected:
		t.r.Rejected++
	default:
		t.r.Failed++
	}
	status := "none"
	if r.status != 0 {
		status = strconv.Itoa(r.status)
	}
	t.r.Statuses[status]++
	if r.outcome == rejected || r.outcome == failed {
		if _, ok := t.r.Reasons[r.reason]; !ok && len(t.r.Reasons) >= maxReasons {
			r.reason = "(other)"
		}
		t.r.Reasons[r.reason]++
	}
	if r.ttft > 0 && r.stream {
		t.ttft.add(r.ttft)
	}
	if r.usage != nil && r.outcome == completed {
		t.r.Told.Requests++
		t.r.Told.Input += r.usage.input()
		t.r.Told.Output += r.usage.output()
	}
}

// line is one line of progress.
func (t *tally) line(elapsed time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%6.0fs  sent %d  in flight %d  done %d  rejected %d  failed %d  overrun %d  ttft p50 %s p99 %s",
		elapsed.Seconds(), t.r.Sent, t.r.Sent-t.ends, t.r.Completed+t.r.Cancelled, t.r.Rejected, t.r.Failed, t.r.Overrun,
		t.ttft.quantile(0.5).Round(time.Millisecond), t.ttft.quantile(0.99).Round(time.Millisecond))
}

func (t *tally) report(o *Options, took time.Duration) *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.r
	r.Target, r.Rows, r.Speed = o.Target, len(o.Rows), o.Speed
	r.Seconds = took.Round(time.Millisecond).Seconds()
	r.Lost = r.Sent - t.ends
	r.Latency, r.TTFT, r.Lag = t.latency.quantiles(), t.ttft.quantiles(), t.lag.quantiles()
	return &r
}

// WriteJSON writes the report as one indented object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for a reader.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "target\t%s\n", r.Target)
	fmt.Fprintf(t, "requests\t%d rows, %d sent in %.1f s at speed %g, %d overrun, %d lost\n", r.Rows, r.Sent, r.Seconds, r.Speed, r.Overrun, r.Lost)
	fmt.Fprintf(t, "outcomes\t%d completed, %d cancelled, %d rejected, %d failed\n", r.Completed, r.Cancelled, r.Rejected, r.Failed)
	fmt.Fprintf(t, "statuses\t%s\n", counts(r.Statuses))
	if len(r.Reasons) > 0 {
		fmt.Fprintf(t, "reasons\t%s\n", counts(r.Reasons))
	}
	for _, q := range []struct {
		name string
		Quantiles
	}{{"latency", r.Latency}, {"ttft", r.TTFT}, {"send lag", r.Lag}} {
		fmt.Fprintf(t, "%s\tp50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms (%d)\n", q.name, q.P50, q.P90, q.P99, q.Max, q.Count)
	}
	fmt.Fprintf(t, "tokens asked\t%d in, %d out\n", r.Asked.Input, r.Asked.Output)
	fmt.Fprintf(t, "tokens told\t%d in, %d out, by %d answers\n", r.Told.Input, r.Told.Output, r.Told.Requests)
	if r.Books != nil {
		r.Books.write(t)
	}
	if r.BooksError != "" {
		fmt.Fprintf(t, "books\t%s\n", r.BooksError)
	}
	return t.Flush()
}

// counts prints a map in order of its keys.
func counts(m map[string]int64) string {
	s := ""
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%s %d", k, m[k])
	}
	return s
}
