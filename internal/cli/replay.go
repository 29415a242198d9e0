package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/egress"
	"sluice/internal/replay"
)

type replayCmd struct {
	Trace  string   `arg:"" help:"Trace file (Azure, BurstGPT, Mooncake, ServeGen or this program's JSONL), or synthetic:SHAPE."`
	Target string   `default:"http://127.0.0.1:8080" help:"Base URL of the gateway (${default})." placeholder:"URL"`
	Key    []string `env:"SLUICE_KEY" help:"Key to send (${env}); several are taken in turn, by client." placeholder:"KEY"`
	Keys   string   `help:"File of lines CLIENT KEY; the client * is for all others." placeholder:"FILE" type:"existingfile"`

	Speed       float64       `default:"1" help:"Trace seconds per second (${default})."`
	Model       string        `help:"Model of rows that name none (sim-small)." placeholder:"MODEL"`
	Dialect     string        `enum:"openai,anthropic" default:"openai" help:"API to speak: ${enum} (${default})." placeholder:"NAME"`
	Whole       bool          `help:"Stream nothing."`
	Abort       float64       `help:"Share of requests that the client leaves, 0 to 1." placeholder:"P"`
	AbortWithin int           `help:"It leaves after 1 to N events with content, or as many times 20 ms of an answer in one piece (20)." placeholder:"N"`
	Rate        float64       `help:"Requests per second of traces that have no times." placeholder:"R"`
	Until       time.Duration `help:"Window of trace time; 0 is all." placeholder:"D"`
	Limit       int           `help:"Rows; 0 is all." placeholder:"N"`
	MaxInput    int64         `help:"Cut rows to this many input tokens." placeholder:"N"`
	MaxOutput   int64         `help:"Cut rows to this many output tokens." placeholder:"N"`
	MaxInFlight int           `help:"Beyond it a row is overrun, not delayed (4096)." placeholder:"N"`
	NoHint      bool          `help:"Do not tell a scripted provider how many tokens to make."`
	Seed        uint64        `default:"1" help:"Of all that is drawn (${default})."`
	RequestTime time.Duration `help:"Longest time of one request (10m)." placeholder:"D"`

	Backend  []string      `help:"Base URL of a fakellm behind the gateway: its book is compared with the ledger, which is read over the admin API." placeholder:"URL"`
	Patience time.Duration `help:"How long the books may take to agree (10s)." placeholder:"D"`
	Quiet    bool          `short:"q" help:"No progress."`
	connection
	output
}

// replayConnect is how long a connection may take: to wait for one that a busy
// gateway accepts late is the latency to measure, not a failure.
const replayConnect = time.Minute

// Run replays a trace. An interrupt cuts the run short; its report says so.
func (c *replayCmd) Run(ctx context.Context, env *Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := c.options(env)
	if err != nil {
		return err
	}
	report, err := replay.Run(ctx, o)
	if err != nil {
		return &codedError{code: exitUsage, msg: err.Error()}
	}
	v, err := reportView(report)
	if err != nil {
		return err
	}
	if err := c.print(env.Stdout, v); err != nil {
		return err
	}
	return c.verdict(report)
}

// reportView is the report's own table for a reader, and one row for csv.
func reportView(r *replay.Report) (view, error) {
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		return view{}, err
	}
	v := view{data: r, text: text.String(), rows: [][]string{nil}}
	add := func(name, value string) {
		v.columns, v.rows[0] = append(v.columns, name), append(v.rows[0], value)
	}
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"sent", r.Sent},
		{"overrun", r.Overrun},
		{"completed", r.Completed},
		{"cancelled", r.Cancelled},
		{"rejected", r.Rejected},
		{"failed", r.Failed},
		{"lost", r.Lost},
	} {
		add(n.name, count(n.n))
	}
	for _, q := range []struct {
		name string
		replay.Quantiles
	}{{"latency", r.Latency}, {"ttft", r.TTFT}, {"lag", r.Lag}} {
		add(q.name+"_p50_ms", fmt.Sprintf("%.1f", q.P50))
		add(q.name+"_p99_ms", fmt.Sprintf("%.1f", q.P99))
	}
	if r.Books != nil {
		add("balance", fmt.Sprint(r.Books.Balance))
	}
	return v, nil
}

// verdict is the expectation of a run: something came back, nothing was lost, and
// the ledger says what was served.
func (c *replayCmd) verdict(r *replay.Report) error {
	switch {
	case r.Sent > 0 && r.Completed+r.Cancelled+r.Lost == 0:
		return &codedError{code: exitFailed, msg: fmt.Sprintf("none of %s completed", plural(int(r.Sent), "request")), hint: c.useless(r)}
	case r.Lost > 0:
		return &codedError{code: exitFailed, msg: fmt.Sprintf("%s lost", plural(int(r.Lost), "request"))}
	case len(c.Backend) > 0 && r.Books == nil:
		return &codedError{code: exitFailed, msg: "the books could not be read: " + r.BooksError}
	case r.Books != nil && !r.Books.Balance:
		return &codedError{code: exitFailed, msg: "the ledger differs from what the backends served"}
	}
	return nil
}

// useless says what keeps every request from completing.
func (c *replayCmd) useless(r *replay.Report) string {
	all := func(statuses ...string) bool {
		var n int64
		for _, s := range statuses {
			n += r.Statuses[s]
		}
		return n == r.Sent
	}
	switch {
	case all("none"):
		return "nothing answers at " + c.Target + ": start the gateway, or give its address with --target"
	case all("401", "403"):
		return "give a key that the gateway knows, and that may ask for the model, with --key, --keys or SLUICE_KEY"
	case all("404"):
		return "name a model that the key has with --model; --target is the address without a path"
	case all("429", "503", "529"):
		return "every request was refused for want of room or budget: lower --speed, or raise the limits of the keys"
	}
	return "see the statuses and reasons of the report"
}

func (c *replayCmd) options(env *Env) (replay.Options, error) {
	rows, err := replay.Open(c.Trace, replay.ReadOptions{Seed: c.Seed, Rate: c.Rate, Until: c.Until, Limit: c.Limit})
	if err != nil {
		return replay.Options{}, &codedError{code: exitUsage, msg: err.Error()}
	}
	transport := egress.New(egress.Options{}).Transport(egress.TransportOptions{AllowPrivate: true, Connect: replayConnect})
	o := replay.Options{
		Rows: rows, Target: c.Target, Keys: map[string]sluice.Secret{}, Speed: c.Speed, Model: c.Model, Dialect: replay.Dialect(c.Dialect),
		Whole: c.Whole, Abort: c.Abort, AbortWithin: c.AbortWithin, Seed: c.Seed, MaxInput: c.MaxInput, MaxOutput: c.MaxOutput, NoInstruction: c.NoHint,
		Timeout: c.RequestTime, MaxInFlight: c.MaxInFlight, Transport: transport, Patience: c.Patience,
	}
	for _, k := range c.Key {
		o.Pool = append(o.Pool, sluice.NewSecret(k))
	}
	if c.Keys != "" {
		if err := readKeys(c.Keys, &o); err != nil {
			return o, err
		}
	}
	if !c.Quiet {
		o.Progress = env.Stderr
	}
	if len(c.Backend) == 0 {
		return o, nil
	}
	for _, b := range c.Backend {
		o.Backends = append(o.Backends, replay.FakeLLM(b, transport))
	}
	api, err := c.client()
	if err != nil {
		return o, err
	}
	o.Ledger = api.book
	return o, nil
}

// readKeys reads lines "CLIENT KEY", or "KEY" alone for the pool. Blank lines
// and those that start with # are skipped.
func readKeys(path string, o *replay.Options) error {
	f, err := os.Open(path)
	if err != nil {
		return &codedError{code: exitUsage, msg: err.Error()}
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) == 1:
			o.Pool = append(o.Pool, sluice.NewSecret(fields[0]))
		case len(fields) == 2:
			o.Keys[fields[0]] = sluice.NewSecret(fields[1])
		default:
			return &codedError{code: exitUsage, msg: fmt.Sprintf("%s:%d: a line has a client and a key", path, n)}
		}
	}
	return lines.Err()
}

// maxBookPages bounds how far back a book is read: five million requests.
const maxBookPages = 10_000

// book reads the ledger from a time on, over the admin API.
func (c *client) book(ctx context.Context, since time.Time) (replay.LedgerBook, error) {
	var s admin.Status
	if err := c.get(ctx, "/admin/v1/status", url.Values{"limit": {"1"}}, &s); err != nil {
		return replay.LedgerBook{}, err
	}
	book := replay.LedgerBook{Open: int64(s.Open)}
	q := url.Values{"limit": {"500"}}
	for range maxBookPages {
		var page struct {
			Requests []admin.Request `json:"requests"`
			Next     string          `json:"next"`
		}
		if err := c.get(ctx, "/admin/v1/requests", q, &page); err != nil {
			return book, err
		}
		for i := range page.Requests {
			r := &page.Requests[i]
			if r.At.Before(since) {
				return book, nil
			}
			if err := c.enter(ctx, &book, r); err != nil {
				return book, err
			}
		}
		if page.Next == "" {
			return book, nil
		}
		q.Set("after", page.Next)
	}
	return book, fmt.Errorf("the ledger has more than %d requests since %s", 500*maxBookPages, stamp(&since))
}

// enter adds a request's attempts. The list has the last one; the others are in
// its explanation.
func (c *client) enter(ctx context.Context, book *replay.LedgerBook, r *admin.Request) error {
	if r.Attempts <= 1 {
		e := replay.LedgerEntry{Provider: r.UpstreamID, Input: r.Input, Output: r.Output}
		book.Entries = append(book.Entries, e)
		return book.Entries[len(book.Entries)-1].Source.UnmarshalText([]byte(r.UsageSource))
	}
	var x admin.Explanation
	if err := c.get(ctx, "/admin/v1/requests/"+seg(r.ID), nil, &x); err != nil {
		return err
	}
	for i := range x.Steps {
		s := &x.Steps[i]
		e := replay.LedgerEntry{Provider: s.UpstreamRequestID}
		for class, n := range s.Charge.Tokens {
			switch class {
			case "output", "reasoning", "audio_output":
				e.Output += n
			default:
				e.Input += n
			}
		}
		if err := e.Source.UnmarshalText([]byte(s.Charge.Source)); err != nil {
			return err
		}
		book.Entries = append(book.Entries, e)
	}
	return nil
}
