package hook

import "math/bits"

// Finder finds what is of some kinds in a text. It is safe for concurrent use.
type Finder struct {
	kinds Kinds
	start [256]Kinds // kinds that may begin with a byte
}

// NewFinder finds the kinds.
func NewFinder(kinds Kinds) *Finder {
	f := &Finder{kinds: kinds}
	mark := func(k Kind, ranges, singles string) {
		if !kinds.Has(k) {
			return
		}
		for c, in := range classOf(ranges, singles) {
			if in {
				f.start[c] |= 1 << k
			}
		}
	}
	mark(PrivateKey, "", "-")
	mark(JWT, "", "e")
	for i := range shapes {
		mark(Secret, "", shapes[i].prefix[:1])
	}
	mark(Email, "azAZ09", "._%+-")
	mark(IBAN, "AZ", "")
	mark(Card, "26", "")
	mark(SSN, "08", "")
	mark(Phone, "29", "+(")
	mark(IP, "afAF09", ":")
	return f
}

// match is one that was found: [start, end) of the text, and what of the text behind
// it belongs to it.
type match struct {
	start, end int
	kind       Kind
	tail       tail
}

// next is the first match at or after from. Where there is none, held is where the
// text must be kept from, since what follows may make a match of it; it is len(s)
// where nothing must.
func (f *Finder) next(s []byte, from int, final bool) (m match, held int, ok bool) {
	for i := from; i < len(s); i++ {
		kinds := f.start[s[i]]
		if kinds == 0 || wordy[s[i]] && i > 0 && wordy[s[i-1]] {
			continue
		}
		for ; kinds != 0; kinds &= kinds - 1 {
			k := Kind(bits.TrailingZeros16(uint16(kinds)))
			switch n, rest, r := matchers[k](s, i, final); r {
			case yes:
				return match{start: i, end: i + n, kind: k, tail: tail{of: rest}}, 0, true
			case more:
				return m, i, false
			}
		}
	}
	return m, len(s), false
}

// all calls f for each match in a whole text, tails included.
func (f *Finder) all(s []byte, each func(start, end int, k Kind)) {
	for from := 0; from < len(s); {
		m, _, ok := f.next(s, from, true)
		if !ok {
			return
		}
		n, _ := m.tail.take(s[m.end:])
		from = m.end + n
		each(m.start, from, m.kind)
	}
}

// Redact is a text with a label in the place of each match: itself where there is none.
func (f *Finder) Redact(text string) string {
	if _, _, ok := f.next([]byte(text), 0, true); !ok {
		return text
	}
	var counts Counts
	return string(spliced([]byte(text), matches(f, []byte(text), &counts)))
}

// Redactor redacts a text that comes in parts. It holds back only what may be the
// beginning of a match. What it lets out in all is the same however the text is cut,
// and equal to the redaction of the whole.
type Redactor struct {
	f      *Finder
	buf    []byte // what is held, after at most one byte of what is not
	held   int    // where in buf that begins
	tail   tail
	Counts Counts
}

// NewRedactor redacts the kinds.
func NewRedactor(kinds Kinds) *Redactor { return &Redactor{f: NewFinder(kinds)} }

// Push takes the next part and appends what is decided to dst.
func (r *Redactor) Push(dst, text []byte) []byte { return r.take(dst, text, false) }

// End appends what was held: the text is over. The redactor can begin another.
func (r *Redactor) End(dst []byte) []byte {
	dst = r.take(dst, nil, true)
	r.buf, r.held, r.tail = r.buf[:0], 0, tail{}
	return dst
}

// Held is how many bytes are held back.
func (r *Redactor) Held() int { return len(r.buf) - r.held }

func (r *Redactor) take(dst, text []byte, final bool) []byte {
	if n, open := r.tail.take(text); n > 0 || open {
		if n > 0 {
			r.buf, r.held = append(r.buf[:0], text[n-1]), 1
		}
		if text = text[n:]; open {
			return dst
		}
	}
	r.buf = append(r.buf, text...)
	from := r.held
	for {
		m, held, ok := r.f.next(r.buf, from, final)
		if !ok {
			dst = append(dst, r.buf[from:held]...)
			from = held
			break
		}
		dst = append(append(dst, r.buf[from:m.start]...), m.kind.label()...)
		r.Counts[m.kind]++
		r.tail = m.tail
		n, open := r.tail.take(r.buf[m.end:])
		if from = m.end + n; open {
			from = len(r.buf)
			break
		}
	}
	keep := max(from-1, 0)
	r.held = from - keep
	r.buf = r.buf[:copy(r.buf, r.buf[keep:])]
	return dst
}
