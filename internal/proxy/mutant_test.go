package proxy

import (
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pieces of what is said, and of what could be meant to be another.
var hostilePieces = []string{
	"\r\n", "\n", "\x00", " ", "\t", ":", ",", "\r\n\r\n", "0", "5", "27", "chunked", "Content-Length: 27\r\n", "Transfer-Encoding: chunked\r\n", "Host: x\r\n", "\xff", "HTTP/1.1", "POST ", "/", "%", "\r\n ", "Connection: close\r\n", "+", "-", ";", "\"",
}

// mutant is s with some of it changed, by its first bytes.
func mutant(draw *rand.Rand, s string) string {
	for range 1 + draw.IntN(3) {
		at := draw.IntN(min(len(s), 200))
		piece := hostilePieces[draw.IntN(len(hostilePieces))]
		switch draw.IntN(4) {
		case 0:
			s = s[:at] + piece + s[at:]
		case 1:
			s = s[:at] + s[min(len(s), at+1+draw.IntN(4)):] + "."
		case 2:
			s = s[:at] + string(rune(draw.IntN(256))) + s[at+1:]
		default:
			s = s[:at] + piece + s[at+1:]
		}
	}
	return s
}

// pace is what of a script may differ: when it is said, and how the connection ends.
var pace = regexp.MustCompile(`(?m)^\S+: (it (stays|ends)\n)?|close=\S+ `)

// malformed is the last answer to what is, which net/http waits longer to see.
const malformed = `400 Bad Request [] -1 "Content-Type: text/plain; charset=utf-8\r\n400 Bad Request" <nil>` + "\n"

// paceless is what does not differ.
func paceless(script string) string {
	return strings.TrimSuffix(pace.ReplaceAllString(script, ""), malformed)
}

// Whoever serves what is nearly sound, its client hears the same.
func TestMutantsAsOther(t *testing.T) {
	most := 300
	if s := os.Getenv("SLUICE_PLAIN_MUTANTS"); s != "" {
		most, _ = strconv.Atoi(s)
	}
	onBoth(t, func(t *testing.T, both func([]string, bool) (plain, by string)) {
		said, draw := conversations(), rand.New(rand.NewPCG(3, 1))
		names := slices.Sorted(maps.Keys(said))
		for n := 0; n < most; {
			s := mutant(draw, said[names[draw.IntN(len(names))]])
			// CR alone behind a body net/http passes over; what is long takes long.
			if len(s) > 2000 || strings.Contains(strings.ReplaceAll(s, "\r\n", ""), "\r") {
				continue
			}
			n++
			at := draw.IntN(len(s))
			parts := []string{s[:at], s[at:]}
			half := draw.IntN(4) == 0 && strings.Count(s, "POST") < 3 // see TestPlainAsOther
			plain, by := both(parts, half)
			if plain != by && paceless(plain) != paceless(by) {
				t.Errorf("%q, cut at %d, half %v:\n%s\nby net/http:\n%s", s, at, half, plain, by)
				return
			}
		}
	})
}
