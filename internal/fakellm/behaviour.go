package fakellm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Behaviour is what one request meets instead of, or beside, a plain answer.
// The zero value answers plainly. Parse one with [ParseBehaviour].
type Behaviour struct {
	// In place of an answer.
	Status      int    // answer with this status and the dialect's error body; 0 answers
	RetryAfter  string // value of the Retry-After header on an error, verbatim; empty for none
	Quota       bool   // the 429 (Anthropic: 402) of a spent account rather than of a rate
	HangHeaders bool   // read the request and say nothing until the client leaves
	HangFirst   bool   // send status and headers, then nothing
	Reset       bool   // close the connection in place of an answer
	Redirect    bool   // 307 to another path

	// Pace, in place of the fleet's.
	Delay time.Duration // before the headers
	First time.Duration // after the headers, before the first event
	Gap   time.Duration // before every content event
	Pause time.Duration // once, after PauseAfter content events

	PauseAfter int

	// The end of a stream, after a number of content events; negative for never.
	DieAfter     int           // abort the connection
	StallAfter   int           // say nothing more until the client leaves
	TruncAfter   int           // end cleanly with no terminal marker
	ErrorAfter   int           // send the dialect's error event, then end
	BadAfter     int           // send an event that is not JSON, then go on
	CorruptAfter int           // Converse: the next frame has a wrong checksum
	Exception    string        // Converse: that of an error, in place of the status' own
	Late         time.Duration // Converse: between the stop and the usage
	ErrorFirst   bool
	NoDone       bool // leave out the terminal marker
	NoFinish     bool // leave out the finish reason
	NeverClose   bool // keep the connection open after the end
	Trailing     bool // send data after the end

	// Framing.
	Usage      string // none, twice, every, huge, negative, zero, falling; empty for the truth
	BigEvent   int    // one event with this many bytes of content
	ByteByByte bool   // every byte is written and flushed alone
	CRLF       bool
	BOM        bool
	NoSpace    bool // no space after the field's colon
	Comments   bool // a comment before every event
	BadUTF8    bool // an invalid byte in the first content event
	Gzip       bool // a compressed answer, whether asked for or not
	WrongType  bool // text/html
	Early      bool // answer before the request body is read
	Drip       bool // the non-streamed body comes in small pieces, a gap apart
	Blank      bool // blank lines before a non-streamed body

	// Content.
	Tokens       int64  // output tokens; -1 for not set
	Reasoning    int64  // hidden reasoning tokens, within the output
	CachedPct    int64  // share of the input read from the cache, in per cent; -1 for the model's
	CacheWritePc int64  // share of the input written to the cache, in per cent
	Served       string // model name in the answer; empty for the one asked for
	Tier         string // service_tier in the answer
	Finish       string // finish reason in the answer; empty for the true one
	Script       string // text: latin (default), cjk, emoji
}

const (
	never       = -1
	defaultBig  = 16 << 20
	mostTokens  = 1 << 20
	mostBig     = 256 << 20
	mostEffects = 32
)

// plain is the behaviour that changes nothing.
func plain() Behaviour {
	return Behaviour{
		DieAfter: never, StallAfter: never, TruncAfter: never, ErrorAfter: never, BadAfter: never, CorruptAfter: never,
		Tokens: never, CachedPct: never,
	}
}

// ParseBehaviour reads faults joined by '!', such as "die-after=3!gap=1s". The
// list is in the package documentation. The error names the fault.
func ParseBehaviour(s string) (Behaviour, error) {
	b := plain()
	return b, b.apply(s)
}

func (b *Behaviour) apply(s string) error {
	n := 0
	for f := range strings.SplitSeq(s, "!") {
		if f = strings.TrimSpace(f); f == "" || f == "ok" {
			continue
		}
		if n++; n > mostEffects {
			return fmt.Errorf("more than %d faults", mostEffects)
		}
		if err := b.one(f); err != nil {
			return fmt.Errorf("fault %q: %w", f, err)
		}
	}
	return nil
}

// splitModel cuts "sim-small!die-after=3" into name and faults.
func splitModel(model string) (name, faults string) {
	name, faults, _ = strings.Cut(model, "!")
	return name, faults
}

// flags are the faults that take no value.
func (b *Behaviour) flag(name string) *bool {
	switch name {
	case "hang-headers":
		return &b.HangHeaders
	case "hang-first":
		return &b.HangFirst
	case "reset":
		return &b.Reset
	case "redirect":
		return &b.Redirect
	case "error-first":
		return &b.ErrorFirst
	case "no-done":
		return &b.NoDone
	case "no-finish":
		return &b.NoFinish
	case "never-close":
		return &b.NeverClose
	case "trailing":
		return &b.Trailing
	case "byte-by-byte":
		return &b.ByteByByte
	case "crlf":
		return &b.CRLF
	case "bom":
		return &b.BOM
	case "no-space":
		return &b.NoSpace
	case "comments":
		return &b.Comments
	case "bad-utf8":
		return &b.BadUTF8
	case "gzip":
		return &b.Gzip
	case "wrong-type":
		return &b.WrongType
	case "early":
		return &b.Early
	case "drip":
		return &b.Drip
	case "blank":
		return &b.Blank
	}
	return nil
}

// count are the faults that take a number of content events, with the one that
// stands when none is written.
func (b *Behaviour) count(name string) (field *int, otherwise int) {
	switch name {
	case "die-after", "die":
		return &b.DieAfter, 3
	case "stall-after", "stall":
		return &b.StallAfter, 3
	case "truncate":
		return &b.TruncAfter, 3
	case "error-event":
		return &b.ErrorAfter, 3
	case "malformed":
		return &b.BadAfter, 1
	case "corrupt":
		return &b.CorruptAfter, 3
	case "big-event":
		return &b.BigEvent, defaultBig
	}
	return nil, 0
}

func (b *Behaviour) span(name string) *time.Duration {
	switch name {
	case "delay":
		return &b.Delay
	case "first":
		return &b.First
	case "gap":
		return &b.Gap
	case "late":
		return &b.Late
	}
	return nil
}

func (b *Behaviour) one(f string) error {
	name, value, valued := strings.Cut(f, "=")
	if p := b.flag(name); p != nil {
		if valued {
			return fmt.Errorf("takes no value")
		}
		*p = true
		return nil
	}
	if p, otherwise := b.count(name); p != nil {
		*p = otherwise
		if !valued {
			return nil
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > mostBig {
			return fmt.Errorf("write a number from 0 to %d", mostBig)
		}
		*p = n
		return nil
	}
	if p := b.span(name); p != nil {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("write a duration such as 1.2s")
		}
		*p = d
		return nil
	}
	return b.valued(name, value)
}

func (b *Behaviour) valued(name, value string) error {
	switch name {
	case "status":
		n, err := strconv.Atoi(value)
		if err != nil || n < 300 || n > 599 {
			return fmt.Errorf("write a status from 300 to 599")
		}
		b.Status = n
	case "429":
		b.Status, b.RetryAfter = http.StatusTooManyRequests, value
	case "503", "529":
		b.Status, _ = strconv.Atoi(name)
		b.RetryAfter = value
	case "quota":
		b.Status, b.Quota = http.StatusTooManyRequests, true
	case "retry-after":
		b.RetryAfter = value
	case "pause":
		after, d, _ := strings.Cut(value, ":")
		n, err := strconv.Atoi(after)
		span, err2 := time.ParseDuration(d)
		if err != nil || err2 != nil || n < 0 || span < 0 {
			return fmt.Errorf("write events and duration such as 3:500ms")
		}
		b.PauseAfter, b.Pause = n, span
	case "usage":
		switch value {
		case "none", "twice", "every", "huge", "negative", "zero", "falling":
			b.Usage = value
		default:
			return fmt.Errorf("use none, twice, every, huge, negative, zero or falling")
		}
	case "tokens":
		return number(value, mostTokens, &b.Tokens)
	case "reasoning":
		return number(value, mostTokens, &b.Reasoning)
	case "cached":
		return number(strings.TrimSuffix(value, "%"), 100, &b.CachedPct)
	case "cache-write":
		return number(strings.TrimSuffix(value, "%"), 100, &b.CacheWritePc)
	case "model":
		b.Served = value
	case "tier":
		b.Tier = value
	case "finish":
		b.Finish = value
	case "exception":
		if exceptions[value] == "" {
			return fmt.Errorf("use one of %s", strings.Join(slices.Sorted(maps.Keys(exceptions)), ", "))
		}
		b.Exception = value
	case "text":
		switch value {
		case "latin", "cjk", "emoji":
			b.Script = value
		default:
			return fmt.Errorf("use latin, cjk or emoji")
		}
	default:
		return fmt.Errorf("there is no such fault")
	}
	return nil
}

func number(s string, most int64, into *int64) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("write a number from 0 to %d", most)
	}
	*into = n
	return nil
}
