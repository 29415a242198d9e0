package wire

import "strings"

// Google's APIs take every member under two names: the one of its JSON and, as protocol
// buffers do, the field's own in snake case. A scan that knew only one could be told a
// bound in one and be billed for what stands in the other. So members are known by
// both, a member that stands under both is refused, and so is one that is a known
// name but for case and underscores.

// spelling is a member in its two spellings.
type spelling struct {
	name, snake string
	read        func(*scanner)
}

// spelt is a member by its name in JSON.
func spelt(name string, read func(*scanner)) spelling { return spelling{name, snake(name), read} }

func snake(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// sameLetters reports whether a key is a name but for case and underscores.
func sameLetters(key []byte, name string) bool {
	if len(key) > 3*len(name) {
		return false
	}
	i := 0
	for _, c := range []byte(name) {
		for i < len(key) && key[i] == '_' {
			i++
		}
		if i == len(key) || key[i]|0x20 != c|0x20 {
			return false
		}
		i++
	}
	for i < len(key) && key[i] == '_' {
		i++
	}
	return i == len(key)
}

// spellings reads the members of an object, each under one of its two names; null
// asks for nothing, and another kind of value is refused. at names the object, empty
// for the request itself.
func (s *scanner) spellings(at string, fields []spelling) span {
	c := s.ws()
	if c != '{' {
		if c != 'n' {
			s.reject(at, "must be an object")
		}
		return s.skip()
	}
	start := s.i
	var seen uint64
next:
	for o := s.object(); s.member(&o); {
		key := s.key(&o)
		for i := range fields {
			f := &fields[i]
			if string(key) == f.name || string(key) == f.snake {
				if seen&(1<<i) != 0 {
					s.reject(within(at, f.name), "stands twice, once in each of its spellings: write it once")
				}
				seen |= 1 << i
				f.read(s)
				continue next
			}
		}
		for i := range fields {
			if f := &fields[i]; sameLetters(key, f.name) {
				s.reject(within(at, f.name), "is written in another way here: write "+f.name+" or "+f.snake)
			}
		}
		s.skip()
	}
	return span{start, s.i}
}

func within(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
