package sched

import "time"

// meterSpan is over how long a rate of service is taken.
const meterSpan = 10 * time.Second

// spans is the clock of a queue's meters: their spans begin together, so that a part is
// told of the same time as its whole.
type spans struct {
	start time.Time // of the one that runs
	n     int64     // how many there were
}

// at is the span in which a moment lies.
func (s *spans) at(now time.Time) int64 {
	switch gone := now.Sub(s.start); {
	case gone < meterSpan:
	case gone < 2*meterSpan:
		s.start, s.n = s.start.Add(meterSpan), s.n+1
	default: // those that nothing was counted in count as one
		s.start, s.n = now.Add(-phase(now)), s.n+2
	}
	return s.n
}

// phase is how long ago a span began, by the clock that all meters read. What is
// made of it keeps the monotonic time.
func phase(now time.Time) time.Duration {
	const span = int64(meterSpan / time.Second)
	return time.Duration((now.Unix()%span+span)%span)*time.Second + time.Duration(now.Nanosecond())
}

// meter is how much work was served lately: the span that runs and the one before.
type meter struct {
	now, last int64
	span      int64 // that now is of
}

func (m *meter) add(span, n int64) {
	if m.span != span {
		m.turn(span)
	}
	m.now += n
}

func (m *meter) turn(span int64) {
	switch span - m.span {
	case 0:
	case 1:
		m.last, m.now = m.now, 0
	default:
		m.last, m.now = 0, 0
	}
	m.span = span
}

// rate is the work per second over the last one to two spans.
func (m meter) rate(s spans, now time.Time) int64 { return m.per(s, now, time.Second) }

// per is how much there is in so long, over the last one to two spans.
func (m meter) per(s spans, now time.Time, unit time.Duration) int64 {
	m.turn(s.at(now))
	span := meterSpan + max(0, now.Sub(s.start))
	return scale(max(0, m.now+m.last), unit.Milliseconds(), max(span.Milliseconds(), 1))
}
