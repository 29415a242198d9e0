package hook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// Some streams count their events, and tell each text again as a whole when it has come in
// parts. What is delivered then is what the parts came to.

// maxSaid bounds what is kept of the texts of a stream to tell them again, in bytes.
const maxSaid = 16 << 20

// After leaves out the events up to a number: the client has them.
func (s *Stream) After(n int64) { s.after = n }

// Added is how many events of its own the stream has by now, by which the numbers of all
// that follow are higher.
func (s *Stream) Added() int64 {
	if s == nil {
		return 0
	}
	return s.added
}

// count reads the number of an event, and where it stands.
func (s *Stream) count(data []byte) (at span) {
	if s.plan.number == "" {
		return at
	}
	eachMember(data, func(name []byte, whole, value span) {
		if string(name) != s.plan.number {
			return
		}
		if n, err := strconv.ParseInt(string(data[value.start:value.end]), 10, 64); err == nil {
			s.at, at = n, value
		}
	})
	return at
}

// keepWith keeps what an event of the lane's own needs, and the text where it is told
// again.
func (s *Stream) keepWith(l *lane, data, part []byte) error {
	if len(s.plan.with) > 0 {
		l.with = appendMembers(l.with[:0], data, s.plan.with)
	}
	if s.said == nil {
		return nil
	}
	if len(l.was)+len(part) > maxSaid {
		return s.run.failure(AtEvent, fmt.Errorf("a text is beyond %d bytes", maxSaid))
	}
	l.was = append(l.was, part...)
	return nil
}

// spoke notes what is delivered of a text.
func (s *Stream) spoke(l *lane, out []byte) {
	if s.said != nil {
		l.is = append(l.is, out...)
	}
}

// again writes what was delivered of a text in the place of the whole of it. One that has
// not come in parts is shown to the hooks as it is.
func (s *Stream) again(ctx context.Context, t *text, was []byte) error {
	whole := unquote(nil, was)
	now, ok := s.said[string(whole)]
	if !ok && len(whole) > 0 {
		now = whole
		for _, h := range s.hooks {
			var edits []Edit
			var err error
			if h.caller != nil {
				edits, err = s.run.askText(ctx, h, Text{Path: t.path, Text: string(now), JSON: t.rule.treat == asJSON && isJSON(now)}, true)
			} else {
				var counts Counts
				if edits = matchesOf(h.finder, t, now, &counts); len(edits) > 0 {
					s.run.redacted(h, AtEvent, &counts)
				}
			}
			if err != nil {
				return err
			}
			now = spliced(now, edits)
		}
		if len(whole) < maxSaid && len(s.said) < maxTold {
			s.said[string(whole)] = now // it comes again with what it is part of
		}
	}
	if string(now) != string(whole) {
		s.edits = append(s.edits, Edit{t.at.start, t.at.end, escape(nil, now)})
	}
	return nil
}

// maxTold bounds how many texts are kept to be told again.
const maxTold = 4096

// matchesOf is the edits that redact a text, in its strings and numbers where it is JSON.
func matchesOf(f *Finder, t *text, now []byte, counts *Counts) []Edit {
	if t.rule.treat == asJSON {
		var w whole
		return w.findJSON(f, now, counts)
	}
	return matches(f, now, counts)
}

// eachMember calls f for the members of an object: with the name, where the member stands
// and where its value does.
func eachMember(data []byte, f func(name []byte, whole, value span)) {
	d := document{b: data}
	if d.ws() != '{' || !d.enter() {
		return
	}
	for d.ws() == '"' {
		start := d.i
		key := d.str()
		if d.ws() != ':' {
			return
		}
		d.i++
		at := d.skip()
		if d.bad {
			return
		}
		f(data[key.start:key.end], span{start, at.end}, at)
		if d.ws() != ',' {
			return
		}
		d.i++
	}
}

// appendMembers appends the named members of an object, with commas between them.
func appendMembers(dst, data []byte, names []string) []byte {
	eachMember(data, func(name []byte, whole, _ span) {
		if !slices.Contains(names, string(name)) {
			return
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, data[whole.start:whole.end]...)
	})
	return dst
}
