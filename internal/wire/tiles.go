package wire

import (
	"strings"

	"sluice"
)

// imageTable is how a family of models bills images.
type imageTable struct {
	most     sluice.Tokens // an image of unknown size is estimated as this
	hardMost sluice.Tokens // and bounded by this
	size     func(w, h int64, detail byte) (estimate, bound sluice.Tokens)
	clips    *clipTable // of what is no image
}

// clipTable is how a family of models bills audio, video and documents by their size.
type clipTable struct{ audio, video, document byteRate }

// byteRate is tokens for bytes: so many for each piece that is begun.
type byteRate struct {
	each, per         sluice.Tokens // estimated
	hardEach, hardPer sluice.Tokens // and bounded
	plus, least       sluice.Tokens // more in the estimate, and the least bound
}

func (r byteRate) of(bytes sluice.Tokens) (estimate, bound sluice.Tokens) {
	return (bytes/r.per)*r.each + r.plus, max((bytes/r.hardPer+1)*r.hardEach, r.least)
}

// usualClips: audio of about ten tokens a second: 16 kB of a usual MP3, 1 kB of the
// most compressed. A page of a PDF is some 64 kB and bills its text and its picture;
// it can be far smaller, so the bound takes one in 2 kB.
var usualClips = clipTable{
	audio:    byteRate{each: 1, per: 1600, hardEach: 1, hardPer: 50, plus: 10, least: 64},
	video:    byteRate{each: 1, per: 400, hardEach: 1, hardPer: 4, plus: 300, least: 1 << 14},
	document: byteRate{each: 2500, per: 64 << 10, hardEach: 4800, hardPer: 2048, plus: 2500},
}

// geminiClips: 32 tokens a second of audio and 263 of video. A page is a picture of 560
// tokens at most and its text.
var geminiClips = clipTable{
	audio:    byteRate{each: 1, per: 500, hardEach: 1, hardPer: 25, plus: 32, least: 256},
	video:    byteRate{each: 1, per: 475, hardEach: 1, hardPer: 4, plus: 300, least: 1 << 14},
	document: byteRate{each: 1000, per: 64 << 10, hardEach: 4800, hardPer: 2048, plus: 1000},
}

// imageTableOf chooses by the backend's name of the model. A name that is not
// known is estimated as a hosted model of today and bounded as the greediest of
// the open ones.
func imageTableOf(d Dialect, model string) imageTable {
	t := hostedTable(d, model[strings.LastIndexByte(model, '/')+1:])
	if t.clips == nil {
		t.clips = &usualClips
	}
	return t
}

func hostedTable(d Dialect, name string) imageTable {
	if d == Anthropic || strings.HasPrefix(name, "claude") {
		return claudeTable(name)
	}
	if strings.HasPrefix(name, "gpt-4o-mini") {
		return tileTable(2833, 5667)
	}
	for _, p := range [...]string{"gpt-4o", "chatgpt-4o", "gpt-4.5", "gpt-4-turbo", "gpt-4-vision", "o1", "o3"} {
		if strings.HasPrefix(name, p) && !strings.HasPrefix(name, "o3-mini") {
			return tileTable(85, 170)
		}
	}
	for _, p := range patchModels {
		if strings.HasPrefix(name, p.prefix) {
			return patchTable(p.percent)
		}
	}
	if d == Gemini || strings.HasPrefix(name, "gemini") {
		return geminiTable(name)
	}
	return openTable()
}

// patchModels bill patches of 32 × 32 pixels times a factor, here in percent. The
// first prefix that fits counts.
var patchModels = []struct {
	prefix  string
	percent int64
}{
	{"gpt-4.1-mini", 162},
	{"gpt-4.1-nano", 246},
	{"o4-mini", 172},
	{"gpt-5-mini", 162},
	{"gpt-5-nano", 246},
	{"gpt-4.1", 120},
	{"gpt-5", 120},
	{"gpt-6", 120},
}

// exactly makes a table whose bound is its estimate.
func exactly(f func(w, h int64, detail byte) sluice.Tokens) func(w, h int64, detail byte) (estimate, bound sluice.Tokens) {
	return func(w, h int64, detail byte) (estimate, bound sluice.Tokens) {
		n := f(w, h, detail)
		return n, n
	}
}

// tileTable fits the image into 2048 × 2048, then shrinks its short side to 768,
// and bills tiles of 512 × 512.
func tileTable(base, tile int64) imageTable {
	size := func(w, h int64, detail byte) sluice.Tokens {
		if detail == 'l' {
			return sluice.Tokens(base)
		}
		w, h = fit(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = up(w*768, short), up(h*768, short)
		}
		return sluice.Tokens(base + tile*up(w, 512)*up(h, 512))
	}
	most := sluice.Tokens(base + tile*8) // 2048 × 768 is 4 × 2 tiles
	return imageTable{most: most, hardMost: most, size: exactly(size)}
}

// patchTable bills patches of 32 × 32, at most 1536 of them, or 10,000 where the
// client asks for the original detail.
func patchTable(percent int64) imageTable {
	patches := func(w, h int64, detail byte) sluice.Tokens {
		cap := int64(1536)
		if detail == 'o' {
			cap = 10000
		}
		return sluice.Tokens(up(min(up(w, 32)*up(h, 32), cap)*percent, 100))
	}
	return imageTable{
		most:     sluice.Tokens(up(1536*percent, 100)),
		hardMost: sluice.Tokens(up(10000*percent, 100)),
		size: func(w, h int64, detail byte) (estimate, bound sluice.Tokens) {
			// The larger cap is the default of the newest models.
			return patches(w, h, detail), patches(w, h, 'o')
		},
	}
}

// claudeTable bills w·h/750 after fitting the long edge into 1568 pixels, or 2576
// on the newest models.
func claudeTable(name string) imageTable {
	wide := func(edge, most int64) func(w, h int64) sluice.Tokens {
		return func(w, h int64) sluice.Tokens {
			w, h = fit(w, h, edge)
			return sluice.Tokens(min(up(w*h, 750), most))
		}
	}
	old, recent := wide(1568, 1640), wide(2576, 4900)
	if oldClaude(name) {
		return imageTable{most: 1640, hardMost: 1640, size: exactly(func(w, h int64, _ byte) sluice.Tokens { return old(w, h) })}
	}
	return imageTable{most: 4900, hardMost: 4900, size: exactly(func(w, h int64, _ byte) sluice.Tokens { return recent(w, h) })}
}

// oldClaude reports a model up to Opus 4.6. A name it does not know is a new one.
func oldClaude(name string) bool {
	for _, p := range [...]string{
		"claude-2", "claude-3", "claude-instant", "claude-haiku-4", "claude-sonnet-4", "claude-opus-4-0", "claude-opus-4-1",
		"claude-opus-4-2", "claude-opus-4-5", "claude-opus-4-6", "claude-opus-4.1", "claude-opus-4.5", "claude-opus-4.6",
	} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// openTable estimates as a hosted model and bounds by patches of 28 × 28, as open
// models with dynamic resolution have them, and by the tiles of those that cut.
func openTable() imageTable {
	hosted := patchTable(120)
	const most = 1 << 14
	return imageTable{most: hosted.most, hardMost: most, size: func(w, h int64, detail byte) (estimate, bound sluice.Tokens) {
		estimate, _ = hosted.size(w, h, detail)
		bound = sluice.Tokens(min(up(w, 28)*up(h, 28), most))
		return estimate, max(bound, 4096)
	}}
}

// geminiTable bills an image by the resolution that is asked for: since Gemini 3 a
// number of tokens for each, before it tiles.
func geminiTable(name string) imageTable {
	if strings.HasPrefix(name, "gemini-1") || strings.HasPrefix(name, "gemini-2") {
		const most = 258 * 17 // 16 tiles of the largest image, and all of it in one
		return imageTable{most: 258, hardMost: most, clips: &geminiClips, size: geminiTiles}
	}
	budget := func(_, _ int64, detail byte) (estimate, bound sluice.Tokens) {
		switch detail {
		case 'l':
			return 280, 1120
		case 'm':
			return 560, 1120
		}
		return 1120, 2240
	}
	return imageTable{most: 1120, hardMost: 2240, clips: &geminiClips, size: budget}
}

// geminiTiles bills 258 tokens for an image of up to 384 × 384 pixels, and for each
// tile of a larger one, whose edge is two thirds of its short side, within 256 and 768.
func geminiTiles(w, h int64, detail byte) (estimate, bound sluice.Tokens) {
	const tile = 258
	w, h = fit(w, h, 3072)
	n := int64(1)
	if max(w, h) > 384 {
		edge := min(max(min(w, h)*2/3, 256), 768)
		n = min(up(w, edge)*up(h, edge), 16)
	}
	estimate = sluice.Tokens(tile * n)
	if detail == 'l' {
		return 64, estimate
	}
	return estimate, estimate + tile
}

// fit shrinks w × h so that its long edge is at most edge.
func fit(w, h, edge int64) (int64, int64) {
	if long := max(w, h); long > edge {
		return up(w*edge, long), up(h*edge, long)
	}
	return w, h
}

// up divides, rounding up.
func up(a, b int64) int64 { return (a + b - 1) / b }
