package fakellm

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"

	"sluice"
)

// What every request costs beside its text, in o200k tokens before the model's
// ratio.
const (
	perMessage = 4   // role and separators
	perReply   = 3   // priming of the answer
	perTools   = 12  // the preamble that declares tools
	perImage   = 765 // any image, whatever its size
)

// mostCounted bounds the text that is really tokenised; longer text is counted
// by the rate of its first part.
const mostCounted = 4 << 20

// counter counts text as a model's own tokenizer would: o200k times a ratio
// that is the model's secret.
type counter struct{ codec tokenizer.Codec }

// o200k is a table of 13 MB that takes 70 ms to build: built at first use, once.
var o200k = sync.OnceValues(func() (tokenizer.Codec, error) { return tokenizer.Get(tokenizer.O200kBase) })

func newCounter() (counter, error) {
	c, err := o200k()
	if err != nil {
		return counter{}, fmt.Errorf("load tokenizer: %w", err)
	}
	return counter{c}, nil
}

// text is the o200k count.
func (c counter) text(s string) int64 {
	if s == "" {
		return 0
	}
	head := s
	if len(s) > mostCounted {
		head = s[:mostCounted]
	}
	n, err := c.codec.Count(head)
	if err != nil { // only in the codec's strict mode
		n = len(head)
	}
	return int64(n) * int64(len(s)) / int64(len(head))
}

// scale turns an o200k count into the model's own, rounded to nearest.
func scale(n, ratioPermille int64) sluice.Tokens {
	return sluice.Tokens((n*ratioPermille + 500) / 1000)
}

// vocabulary is the words that output text is made of. Each has its o200k
// count, so that text of a wanted length can be made without tokenising it.
type vocabulary struct {
	latin, cjk, emoji []piece
}

type piece struct {
	text string // with its leading space
	size int64  // o200k tokens
}

const (
	latinWords = "the of and to in is that for it with as on be are this by from at or an have not which one all we when there can more if out so what up about into than them only some could time these two may then do first any like my now over such our man me even most made after also did many before must through back years where much your way well down should because each just those people how too little state good very make world still own see men work long get here between both life being under never day same another know while last might us great old year off come since against go came right used take three states himself few house use during without again place around however home small found thought went say part once general high upon school every water light city music river garden morning window letter winter summer bread table paper silver green yellow simple answer question number story reason moment market power system process method result value change field force group line point side form body hand head heart mind"
	cjkWords   = "你好 世界 今天 天气 很好 我们 学习 语言 模型 数据 时间 中国 日本 東京 言葉 です ます 한국 사람 시간 それ これ 可以 因为 所以 问题 方法 工作 生活 文化"
	emojiWords = "🙂 🚀 ✅ 🎉 ❤️ 👍 🌍 ☕ 🐍 🎵 the and with word time 😀 🔥 ✨ 📦 👩‍💻"
)

func newVocabulary(c counter) vocabulary {
	pieces := func(words string) []piece {
		var out []piece
		for w := range strings.FieldsSeq(words) {
			out = append(out, piece{" " + w, c.text(" " + w)})
		}
		return out
	}
	return vocabulary{latin: pieces(latinWords), cjk: pieces(cjkWords), emoji: pieces(emojiWords)}
}

// writer makes deterministic text, a stretch at a time.
type writer struct {
	pieces []piece
	seed   uint64
	drawn  uint64 // pieces so far
	size   int64  // their o200k tokens
	ratio  int64  // permille: own tokens per o200k token
}

func (v vocabulary) writer(script string, seed uint64, ratio int64) *writer {
	p := v.latin
	switch script {
	case "cjk":
		p = v.cjk
	case "emoji":
		p = v.emoji
	}
	return &writer{pieces: p, seed: seed, ratio: ratio}
}

// upTo returns the text between what has been written and the model's n-th
// token. It may be empty: not every token of its own ends a word.
func (w *writer) upTo(n sluice.Tokens) string {
	want := int64(n) * 1000 / w.ratio
	if w.size >= want {
		return ""
	}
	var b strings.Builder
	for w.size < want {
		p := w.pieces[mix(w.seed+w.drawn)%uint64(len(w.pieces))]
		text := p.text
		switch {
		case w.drawn == 0:
			text = strings.TrimPrefix(text, " ")
		case w.drawn%13 == 12:
			text, p.size = ".", 1
		case w.drawn%29 == 28:
			text, p.size = ",", 1
		}
		b.WriteString(text)
		w.size += p.size
		w.drawn++
	}
	return b.String()
}

// mix spreads a number over 64 bits (SplitMix64's finaliser).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
