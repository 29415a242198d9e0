package hook

// found is what a matcher says of the text that begins at its place.
type found uint8

const (
	no   found = iota // no match begins here, whatever follows
	yes               // one does
	more              // what follows decides
)

// A matcher judges the match that begins at s[i]. It may look at s[i-1]. Where final
// is not set s may go on, and what it says must hold however it goes on: that makes
// the result independent of how a text is cut. n is the length of the match; what
// follows it of the class rest, if there is one, belongs to it still.
type matcher func(s []byte, i int, final bool) (n int, rest *class, r found)

var matchers = [NumKinds]matcher{
	PrivateKey: matchPEM, JWT: matchJWT, Secret: matchSecret, Email: matchEmail, IBAN: matchIBAN,
	Card: matchCard, SSN: matchSSN, Phone: matchPhone, IP: matchIP,
}

// class is a set of bytes.
type class [256]bool

func classOf(ranges, singles string) (c class) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			c[b] = true
		}
	}
	for i := range len(singles) {
		c[singles[i]] = true
	}
	return c
}

var (
	digits    = classOf("09", "")
	upper     = classOf("AZ", "")
	alnum     = classOf("azAZ09", "")
	wordy     = classOf("azAZ09", "_")
	base64url = classOf("azAZ09", "_-")
	upperNum  = classOf("AZ09", "")
	hexes     = classOf("afAF09", "")
	jwtTail   = classOf("azAZ09", "_-.")
	local     = classOf("azAZ09", "._%+-")
	domain    = classOf("azAZ09", ".-")
	addresses = classOf("afAF09", ":.")
	pemBody   = classOf("azAZ09", "+/= \t\r\n\\:,-")
)

// run is where the bytes of a class that begin at i end, looking at most at most of
// them.
func run(s []byte, i int, c *class, most int) int {
	end := min(len(s), i+most)
	for i < end && c[s[i]] {
		i++
	}
	return i
}

// before reports whether a byte of the class stands before i.
func before(s []byte, i int, c *class) bool { return i > 0 && c[s[i-1]] }

// open is what a matcher says that has come to the end of s undecided.
func open(final bool) found {
	if final {
		return no
	}
	return more
}

// follows is yes unless a byte of the class follows a match that ends at j.
func follows(s []byte, j int, c *class, final bool) found {
	switch {
	case j >= len(s) && !final:
		return more
	case j < len(s) && c[s[j]]:
		return no
	}
	return yes
}

// tail is the rest of a match whose beginning tells what it is: it is dropped as it
// comes and never held.
type tail struct {
	of     *class // nil for none; pemBody ends with its END line
	ending bool   // that has begun
	dashes int
}

// take is how many bytes of s belong to the tail; open is whether it may go on.
func (t *tail) take(s []byte) (n int, open bool) {
	if t.of == nil {
		return 0, false
	}
	for n < len(s) {
		c := s[n]
		if !t.of[c] {
			*t = tail{}
			return n, false
		}
		n++
		if t.of != &pemBody {
			continue
		}
		if c == '-' {
			if t.dashes++; t.ending && t.dashes == 5 {
				*t = tail{}
				return n, false
			}
			continue
		}
		t.ending = t.ending || t.dashes >= 5 && c == 'E'
		t.dashes = 0
	}
	return n, true
}

// maxPEMName bounds what stands between BEGIN and the dashes.
const maxPEMName = 48

func matchPEM(s []byte, i int, final bool) (int, *class, found) {
	const begin, key, dashes = "-----BEGIN ", "PRIVATE KEY", "-----"
	if before(s, i, &dash) {
		return 0, nil, no
	}
	if r := literal(s, i, begin, final); r != yes {
		return 0, nil, r
	}
	from := i + len(begin)
	j := run(s, from, &pemName, maxPEMName)
	if j == len(s) && j < from+maxPEMName {
		return 0, nil, open(final)
	}
	if !contains(s[from:j], key) {
		return 0, nil, no
	}
	if r := literal(s, j, dashes, final); r != yes {
		return 0, nil, r
	}
	return j + len(dashes) - i, &pemBody, yes
}

var (
	dash    = classOf("", "-")
	pemName = classOf("AZ09", " ")
)

func contains(s []byte, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if string(s[i:i+len(part)]) == part {
			return true
		}
	}
	return false
}

// literal reports whether text stands at i.
func literal(s []byte, i int, text string, final bool) found {
	have := s[i:]
	if len(have) >= len(text) {
		if string(have[:len(text)]) == text {
			return yes
		}
		return no
	}
	if string(have) == text[:len(have)] {
		return open(final)
	}
	return no
}

// The lengths by which a JSON web token is known, and the longest header.
const (
	jwtPart   = 10
	jwtHeader = 2048
)

func matchJWT(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &base64url) {
		return 0, nil, no
	}
	if r := literal(s, i, "eyJ", final); r != yes {
		return 0, nil, r
	}
	j := run(s, i, &base64url, jwtHeader)
	switch {
	case j == len(s) && j < i+jwtHeader:
		return 0, nil, open(final)
	case s[j-1] == '-' && j-i < jwtPart, j-i < jwtPart, j == i+jwtHeader, s[j] != '.':
		return 0, nil, no
	}
	k := run(s, j+1, &base64url, jwtPart)
	switch {
	case k == j+1+jwtPart:
		return k - i, &jwtTail, yes
	case k == len(s):
		return 0, nil, open(final)
	}
	return 0, nil, no
}

// The bounds of an e-mail address.
const (
	maxLocal  = 64
	maxDomain = 253
)

func matchEmail(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &local) {
		return 0, nil, no
	}
	at := run(s, i, &local, maxLocal+1)
	switch {
	case at-i > maxLocal:
		return 0, nil, no
	case at == len(s):
		return 0, nil, open(final)
	case s[at] != '@' || at == i:
		return 0, nil, no
	}
	end := run(s, at+1, &domain, maxDomain+1)
	switch {
	case end-at-1 > maxDomain:
		return 0, nil, no
	case end == len(s) && !final:
		return 0, nil, more
	}
	if n := hostLength(s[at+1 : end]); n > 0 {
		return at + 1 + n - i, nil, yes
	}
	return 0, nil, no
}

// hostLength is the length of the longest host name that d begins with and that ends
// in a label of letters, 0 if there is none.
func hostLength(d []byte) int {
	best, label, letters, dots := 0, 0, true, 0
	for i := 0; ; i++ {
		if i == len(d) || d[i] == '.' {
			size := i - label
			if size == 0 || d[label] == '-' {
				return best
			}
			if dots > 0 && letters && size >= 2 {
				best = i
			}
			if i == len(d) {
				return best
			}
			dots++
			label, letters = i+1, true
			continue
		}
		letters = letters && !digits[d[i]] && d[i] != '-'
	}
}
