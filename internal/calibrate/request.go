package calibrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/wire"
)

// The bounds of an answer, in bytes.
const (
	maxEvent  = 1 << 20
	maxStream = 64 << 20
	maxError  = 4 << 10
)

// refusal is an answer that is not a stream.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string {
	return fmt.Sprintf("the backend answers %d: %s", e.status, e.text)
}

// body is a request for exactly so many tokens.
type body struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int64     `json:"max_tokens"`
	MinTokens int64     `json:"min_tokens,omitempty"`
	IgnoreEnd bool      `json:"ignore_eos,omitempty"`
	Stream    bool      `json:"stream"`
	Options   options   `json:"stream_options"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type options struct {
	Usage   bool `json:"include_usage"`
	Running bool `json:"continuous_usage_stats,omitempty"`
}

// request sends one request of a probe and notes its arrivals.
func (r *runner) request(ctx context.Context, p fleet.Probe) (fleet.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	prompt, words := r.prompt(p)
	b := body{
		Model: r.o.Model, Messages: []message{{"user", prompt}}, MaxTokens: int64(p.Output), Stream: true, Options: options{Usage: true},
	}
	if !r.plain {
		b.MinTokens, b.IgnoreEnd, b.Options.Running = int64(p.Output), true, true
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return fleet.Run{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base.JoinPath("/v1/chat/completions").String(), bytes.NewReader(raw))
	if err != nil {
		return fleet.Run{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key := r.o.Key.Reveal(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	run := fleet.Run{Sent: time.Now()}
	res, err := r.o.Transport.RoundTrip(req)
	if err != nil {
		return run, fmt.Errorf("the backend at %s does not answer: %w", r.base, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
		return run, &refusal{res.StatusCode, strings.Join(strings.Fields(string(text)), " ")}
	}
	if err := read(res.Body, &run); err != nil {
		return run, err
	}
	r.learn(words, run.Input)
	return run, nil
}

// event is what matters of one event of a stream.
type event struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

// read notes when tokens come, to the end of a stream.
func read(stream io.Reader, run *fleet.Run) error {
	events := wire.NewEvents(io.LimitReader(stream, maxStream), maxEvent)
	running, total := false, int64(0)
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the stream broke: %w", err)
		}
		if len(e.Data) == 0 || string(e.Data) == "[DONE]" {
			continue
		}
		var x event
		if err := json.Unmarshal(e.Data, &x); err != nil {
			return fmt.Errorf("an event is not JSON: %w", err)
		}
		if len(x.Error) > 0 && string(x.Error) != "null" {
			return fmt.Errorf("the stream ended with an error: %.200s", x.Error)
		}
		content := false
		for _, c := range x.Choices {
			content = content || c.Delta.Content != "" || c.Delta.Reasoning != ""
		}
		if x.Usage != nil {
			run.Input, total = sluice.Tokens(x.Usage.Prompt), max(total, x.Usage.Completion)
		}
		if !content {
			continue
		}
		a := fleet.Arrival{At: time.Now(), Tokens: sluice.Tokens(len(run.Arrivals) + 1)}
		if x.Usage != nil && x.Usage.Completion > 0 {
			running, a.Tokens = true, sluice.Tokens(x.Usage.Completion)
		}
		run.Arrivals = append(run.Arrivals, a)
	}
	if n := len(run.Arrivals); !running && n > 0 && total > int64(n) {
		for i := range run.Arrivals {
			run.Arrivals[i].Tokens = sluice.Tokens(math.Round(float64(total) * float64(i+1) / float64(n)))
		}
	}
	return nil
}

// common words are a token each in the tokenizers of the day.
var common = strings.Fields(`time people water place house world school state family student group country problem hand part case week company
system program question work government number night point home room mother area money story fact month book word business issue side kind head
service friend father power hour game line end member law car city community name president team minute idea body information back parent face
others level office door health person art war history party result change morning reason research girl guy moment air teacher force education`)

// prompt is about as many tokens as the probe asks for, with a beginning that no
// other prompt has, and how many words it has.
func (r *runner) prompt(p fleet.Probe) (text string, words int64) {
	r.mu.Lock()
	r.sent++
	x := r.o.Seed*0x9e3779b97f4a7c15 + r.sent
	words = max(int64(math.Round((float64(p.Input)-r.frame)*r.words)), 1)
	r.mu.Unlock()
	var b strings.Builder
	for range words {
		x += 0x9e3779b97f4a7c15 // splitmix64
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b.WriteString(common[(z^z>>31)%uint64(len(common))])
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "[[tokens=%d]]", p.Output)
	return b.String(), words
}

// learn corrects how many words make a token, by prompts that are long enough for
// their frame not to matter.
func (r *runner) learn(words int64, counted sluice.Tokens) {
	if counted < 200 || words < 100 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ratio := float64(words) / (float64(counted) - r.frame); ratio > 0.1 && ratio < 2 {
		r.words = ratio
	}
}
