package replay

import (
	"encoding/json"
	"strconv"
	"strings"
)

// words are common enough to be one token each in any tokenizer of the day.
var words = strings.Fields(`the of and to in is it that for was on are as with his they at be this have from or one had by
but not what all were we when your can said there use an each which she do how their if will up other about out many then them
these so some her would make like him into time has look two more write go see number no way could people my than first water
been call who its now find long down day did get come made may part over new sound take only little work know place year live
back give most very after thing our just name good sentence man think say great where help through much before line right too
mean old any same tell boy follow came want show also around form three small set put end does another well large must big even
such because turn here why ask went men read need land different home us move try kind hand picture again change off play spell
air away animal house point page letter mother answer found study still learn should world high every near between own below
country plant last school father keep tree never start city earth eye light thought head under story saw left few while along`)

// overhead is what framing and the closing instruction cost a prompt, in tokens.
const overhead = 14

// sentence is the tokens of one sentence, full stop included.
const sentence = 18

// text makes a prompt of about n tokens. Equal seeds make equal text.
func text(b *strings.Builder, n int64, seed uint64) {
	for i := range n {
		if i%sentence == sentence-1 { // a full stop is a token
			b.WriteByte('.')
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[mix(seed+uint64(i))%uint64(len(words))])
	}
}

// blockTokens is the size of a prompt block in the published traces.
const blockTokens = 512

// prompt makes the row's prompt: its blocks, where it has any, so that equal
// leading ids give equal leading text, then text of its own.
func prompt(r *Row, seed uint64, instruct bool) string {
	n := r.Input - overhead
	if !instruct {
		n = r.Input - overhead/2
	}
	n = max(n, 1)
	var b strings.Builder
	b.Grow(int(n) * 5)
	for _, id := range r.Blocks {
		k := min(n, blockTokens)
		text(&b, k, mix(uint64(id)))
		n -= k
	}
	text(&b, n, seed)
	if instruct {
		b.WriteString(" [[tokens=")
		b.WriteString(strconv.FormatInt(r.Output, 10))
		b.WriteString("]]")
	}
	return b.String()
}

// request is the part of a body that both dialects share.
type request struct {
	Model     string         `json:"model"`
	MaxTokens int64          `json:"max_tokens"`
	Stream    bool           `json:"stream,omitempty"`
	Options   *streamOptions `json:"stream_options,omitempty"`
	User      string         `json:"user,omitempty"`
	Metadata  *metadata      `json:"metadata,omitempty"`
	Messages  []turn         `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type metadata struct {
	UserID string `json:"user_id"`
}

type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body makes the request for a row in a dialect.
func body(r *Row, o *Options, seed uint64) ([]byte, error) {
	q := request{
		Model: r.Model, MaxTokens: r.Output, Stream: !r.Whole,
		Messages: []turn{{"user", prompt(r, seed, !o.NoInstruction)}},
	}
	if q.Model == "" {
		q.Model = o.Model
	}
	if o.Dialect == Anthropic {
		if r.Client != "" {
			q.Metadata = &metadata{r.Client}
		}
		return json.Marshal(q)
	}
	q.User = r.Client
	if q.Stream {
		q.Options = &streamOptions{IncludeUsage: true}
	}
	return json.Marshal(q)
}

// mix spreads a number over 64 bits (SplitMix64's finaliser).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
