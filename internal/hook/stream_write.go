package hook

import (
	"strconv"
	"strings"

	"sluice/internal/wire"
)

// alone writes a part of a text as an event of its own.
func (s *Stream) alone(l *lane, part []byte) {
	d := &s.plan.deltas[l.flush]
	b := append(s.spliced[:0], '{')
	number := s.at + s.added
	if s.plan.number != "" {
		b = append(append(append(b, '"'), s.plan.number...), `":`...)
		b = append(strconv.AppendInt(b, number, 10), ',')
		s.added++
	}
	if len(l.with) > 0 {
		b = append(append(b, l.with...), ',')
	}
	if len(s.envelope) > 0 {
		b = append(append(b, s.envelope...), ',')
	}
	for form := d.Alone; form != ""; {
		i := strings.IndexByte(form, '$')
		if i < 0 {
			b = append(b, form...)
			break
		}
		b = append(b, form[:i]...)
		if form = form[i+1:]; strings.HasPrefix(form, "text") {
			b = append(escape(append(b, '"'), part), '"')
			form = form[len("text"):]
			continue
		}
		b = strconv.AppendInt(b, int64(l.index.of[form[0]-'0']), 10)
		form = form[1:]
	}
	s.spliced = append(b, '}')
	if s.plan.number == "" || number > s.after {
		s.out = wire.AppendEvent(s.out, d.Event, s.spliced)
	}
}

// keepEnvelope keeps the members that an event of our own has too, of the first event
// that has any.
func (s *Stream) keepEnvelope(data []byte) {
	if len(s.envelope) == 0 && len(s.plan.envelope) > 0 {
		s.envelope = appendMembers(s.envelope, data, s.plan.envelope)
	}
}
