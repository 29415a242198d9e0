package dialect

import "strings"

// mediaType is a MIME type in the one spelling that every provider reads: in small letters
// and without parameters.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	if s = strings.ToLower(strings.TrimSpace(s)); s == "image/jpg" {
		return "image/jpeg"
	}
	return s
}

// plain64 is base64 in the alphabet and with the padding that every provider reads. That
// for URLs, which Google's clients write, is read by Google alone.
func plain64(s string) string {
	if strings.ContainsAny(s, "-_") {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	if n := len(s) % 4; n > 1 {
		s += "=="[n-2:]
	}
	return s
}
