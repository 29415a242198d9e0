package hook

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// A text that stands in JSON is unquoted to be judged, and its edits are mapped back to
// the literal's bytes. A lone half of a surrogate pair, which a provider may cut between
// two events, is kept as the three bytes that UTF-8 would have for it, so that it can be
// written out as it came.

// unquote appends what the inside of a JSON string literal stands for.
func unquote(dst, in []byte) []byte {
	for i := 0; i < len(in); {
		n := 1
		if in[i] != '\\' {
			for i+n < len(in) && in[i+n] != '\\' {
				n++
			}
			dst = append(dst, in[i:i+n]...)
		} else {
			dst, n = unescape(dst, in[i:])
		}
		i += n
	}
	return dst
}

// unescape appends what the escape that in begins with stands for, and tells its length.
func unescape(dst, in []byte) ([]byte, int) {
	if len(in) < 2 {
		return append(dst, in...), len(in)
	}
	switch in[1] {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
	default:
		return append(dst, in[1]), 2
	}
	r, ok := hex4(in[2:])
	if !ok {
		return append(dst, in[:2]...), 2
	}
	if utf16.IsSurrogate(r) {
		if len(in) >= 12 && in[6] == '\\' && in[7] == 'u' {
			if low, ok := hex4(in[8:]); ok {
				if p := utf16.DecodeRune(r, low); p != utf8.RuneError {
					return utf8.AppendRune(dst, p), 12
				}
			}
		}
		return appendHalf(dst, r), 6
	}
	return utf8.AppendRune(dst, r), 6
}

// appendHalf appends half of a surrogate pair.
func appendHalf(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0xbf)
}

// half reads what appendHalf writes.
func half(s []byte) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 {
		return 0, false
	}
	return rune(s[0]&0xf)<<12 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

func hex4(in []byte) (r rune, ok bool) {
	if len(in) < 4 {
		return 0, false
	}
	for _, c := range in[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// escape appends a text as the inside of a JSON string literal.
func escape(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
		case c == 0xed:
			if r, ok := half(text[i:]); ok {
				dst = append(dst, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
				i += 3
				continue
			}
			dst = append(dst, c)
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// plain reports whether a literal's inside stands for itself.
func plain(in []byte) bool {
	return !slices.Contains(in, '\\')
}

// An Edit replaces the bytes [Start, End) of a text.
type Edit struct {
	Start, End int
	With       []byte
}

// rawEdits maps edits of the text that a literal's inside stands for to that inside.
// REQUIRES: edits are in order, do not overlap and are within the text. An edit that
// begins or ends within what one escape stands for takes all of the escape.
func rawEdits(in []byte, edits []Edit) []Edit {
	out := make([]Edit, len(edits))
	var small [4]byte
	at, text := 0, 0 // of the literal, of the text
	to := func(want int, after bool) int {
		for text < want {
			n, size := 1, 1
			if in[at] == '\\' {
				var one []byte
				one, n = unescape(small[:0], in[at:])
				size = len(one)
			}
			if text+size > want && !after {
				break
			}
			at, text = at+n, text+size
		}
		return at
	}
	for i, e := range edits {
		out[i] = Edit{Start: to(e.Start, false), With: escape(nil, e.With)}
		out[i].End = to(e.End, true)
	}
	return out
}

// spliced is s with edits made. REQUIRES: as for rawEdits.
func spliced(s []byte, edits []Edit) []byte {
	size := len(s)
	for _, e := range edits {
		size += len(e.With) - (e.End - e.Start)
	}
	out := make([]byte, 0, max(size, 0))
	from := 0
	for _, e := range edits {
		out = append(append(out, s[from:e.Start]...), e.With...)
		from = e.End
	}
	return append(out, s[from:]...)
}
