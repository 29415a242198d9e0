package dialect

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Logprob is how likely one token of the answer was. Figures are as written.
type Logprob struct {
	Token   string         `json:"token"`
	Logprob jsontext.Value `json:"logprob"`
	Bytes   jsontext.Value `json:"bytes,omitempty"` // of the token; nil if they are not told
	Top     []Logprob      `json:"top_logprobs,omitempty"`
}

// unlikely is the figure by which OpenAI's dialects tell a token that is next to
// impossible: JSON has no infinity.
const unlikely = "-9999.0"

// appendLogprobs appends a list of log probabilities, with the bytes of each token or
// without.
func appendLogprobs(b []byte, list []Logprob, withBytes bool) []byte {
	b = append(b, '[')
	for i := range list {
		b = list[i].append(b, withBytes)
		b = append(key(b, "top_logprobs"), '[')
		for j := range list[i].Top {
			b = append(list[i].Top[j].append(b, withBytes), '}')
		}
		b = append(b, ']', '}')
	}
	return append(b, ']')
}

// append appends the beginning of one.
func (p *Logprob) append(b []byte, withBytes bool) []byte {
	b = pair(append(sep(b), '{'), "token", p.Token)
	b = append(key(b, "logprob"), p.figure()...)
	if withBytes {
		b = p.bytes(key(b, "bytes"))
	}
	return b
}

// bytes appends the bytes of the token: those that are told, else those of its text.
// There are none where its text stands for bytes that are no UTF-8.
func (p *Logprob) bytes(b []byte) []byte {
	if len(p.Bytes) > 0 && p.Bytes[0] == '[' {
		from := len(b)
		b = append(b, p.Bytes...)
		list := jsontext.Value(b[from:])
		_ = list.Compact() // it was read; an event has no line breaks
		return append(b[:from], list...)
	}
	b = append(b, '[')
	if len(p.Bytes) == 0 && !strings.ContainsRune(p.Token, utf8.RuneError) {
		for i := range len(p.Token) {
			b = strconv.AppendUint(sep(b), uint64(p.Token[i]), 10)
		}
	}
	return append(b, ']')
}

// figure is the log probability as a number: Gemini leaves 0 out, and has words for what
// JSON has no number for.
func (p *Logprob) figure() string {
	switch v := p.Logprob; {
	case len(v) > 0 && v[0] == '"':
		return unlikely
	case v.Kind() == '0':
		return string(v)
	}
	return "0"
}

// geminiLogprobs are the log probabilities of a candidate: of the tokens that were
// chosen, and of those that were likely in the place of each.
type geminiLogprobs struct {
	Chosen []geminiLogprob `json:"chosenCandidates"`
	Top    []struct {
		Candidates []geminiLogprob `json:"candidates"`
	} `json:"topCandidates"`
}

type geminiLogprob struct {
	Token   string         `json:"token"`
	Logprob jsontext.Value `json:"logProbability"`
}

// list is the log probabilities in no dialect. The numbers of tokens have no place in
// others.
func (g *geminiLogprobs) list() []Logprob {
	if len(g.Chosen) == 0 {
		return nil
	}
	out := make([]Logprob, len(g.Chosen))
	for i := range out {
		out[i] = g.Chosen[i].plain()
		if i >= len(g.Top) {
			continue
		}
		for j := range g.Top[i].Candidates {
			out[i].Top = append(out[i].Top, g.Top[i].Candidates[j].plain())
		}
	}
	return out
}

func (p *geminiLogprob) plain() Logprob {
	return Logprob{Token: p.Token, Logprob: p.Logprob}
}

// spread gives each of an answer's texts the log probabilities of its tokens, by the bytes
// of both: a token is that text's in which it begins, and what goes beyond all of them the
// last one's. It reports whether there is a text.
func spread[T any, P saying[T]](texts []T, list []Logprob) bool {
	var last *[]Logprob
	at := 0
	for i := range texts {
		s, to := P(&texts[i]).said()
		if to == nil {
			continue
		}
		last = to
		from := at
		for n := 0; at < len(list) && n < len(s); at++ {
			n += len(list[at].Token)
		}
		*to = list[from:at:at]
	}
	if last != nil && at < len(list) {
		*last = append(*last, list[at:]...)
	}
	return last != nil
}

// saying is a part or an event: its text and where the log probabilities of that belong;
// nil if it is no text.
type saying[T any] interface {
	*T
	said() (string, *[]Logprob)
}

func (p *Part) said() (string, *[]Logprob) {
	if p.Kind != TextPart {
		return "", nil
	}
	return p.Text, &p.Logprobs
}

func (e *Event) said() (string, *[]Logprob) {
	if e.Kind != EventText {
		return "", nil
	}
	return e.Text, &e.Logprobs
}

// likelihood is the mean of log probabilities while they come.
type likelihood struct {
	sum float64
	n   int64
}

func (l *likelihood) add(list []Logprob) {
	for i := range list {
		if v, err := strconv.ParseFloat(list[i].figure(), 64); err == nil {
			l.sum, l.n = l.sum+v, l.n+1
		}
	}
}

// append appends the member that Gemini has for it, where there is any.
func (l *likelihood) append(b []byte) []byte {
	if mean := l.sum / float64(l.n); l.n > 0 && !math.IsInf(mean, 0) {
		b = strconv.AppendFloat(key(b, "avgLogprobs"), mean, 'g', -1, 64)
	}
	return b
}

// geminiLikely appends log probabilities as Gemini has them, where there are any.
func geminiLikely(b []byte, list []Logprob) []byte {
	if len(list) == 0 {
		return b
	}
	top := false
	b = append(key(append(key(b, "logprobsResult"), '{'), "chosenCandidates"), '[')
	for i := range list {
		b = list[i].gemini(b)
		top = top || len(list[i].Top) > 0
	}
	b = append(b, ']')
	if top { // one for each that was chosen
		b = append(key(b, "topCandidates"), '[')
		for i := range list {
			b = append(key(append(sep(b), '{'), "candidates"), '[')
			for j := range list[i].Top {
				b = list[i].Top[j].gemini(b)
			}
			b = append(b, ']', '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func (p *Logprob) gemini(b []byte) []byte {
	b = pair(append(sep(b), '{'), "token", p.Token)
	return append(append(key(b, "logProbability"), p.figure()...), '}')
}

// openaiLogprobs appends the log probabilities of a choice.
func openaiLogprobs(b []byte, list []Logprob) []byte {
	if len(list) == 0 {
		return append(b, `,"logprobs":null`...)
	}
	b = append(key(b, "logprobs"), `{"content":`...)
	return append(appendLogprobs(b, list, true), `,"refusal":null}`...)
}
