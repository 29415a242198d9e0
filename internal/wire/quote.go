package wire

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendUnquoted appends the text that the inside of a JSON string literal stands
// for. REQUIRES: in has been read by a lexer. Lone surrogates become U+FFFD.
func appendUnquoted(dst, in []byte) []byte {
	for i := 0; i < len(in); {
		c := in[i]
		if c != '\\' || i+1 >= len(in) {
			dst = append(dst, c)
			i++
			continue
		}
		i += 2
		switch in[i-1] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := unescapeRune(in[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		default:
			dst = append(dst, in[i-1])
		}
	}
	return dst
}

// unescapeRune reads what follows \u: four digits, or a whole surrogate pair.
func unescapeRune(in []byte) (rune, int) {
	r, ok := hex4(in, 0)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(in) >= 10 && in[4] == '\\' && in[5] == 'u' {
		if low, ok := hex4(in, 6); ok {
			if p := utf16.DecodeRune(r, low); p != utf8.RuneError {
				return p, 10
			}
		}
	}
	return utf8.RuneError, 4
}

// quoted is s as a JSON string literal. Bytes that are no UTF-8 become U+FFFD.
func quoted(s string) []byte {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // invalid UTF-8, which has been replaced
		return b
	}
	return b
}

// clip shortens text to at most n bytes, at a character's border.
func clip[T ~string | ~[]byte](s T, n int) string {
	if len(s) <= n {
		return string(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return string(s[:n]) + "…"
}
