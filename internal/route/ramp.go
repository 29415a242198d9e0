package route

import "time"

// Ease leaves out what a breaker lets no more go to, of places for which left is
// Chosen: one whose ramp lasts gets its next request when its turn has come, if
// another can serve. It returns the index of a place that is due its probe, which
// is to get the request: -1 if there is none.
func Ease(now time.Time, places []*Place, left []Left) (probe int) {
	apart := false
	for i, p := range places {
		apart = apart || left[i] == Chosen && (p.rejoin || !p.steady())
	}
	if !apart { // most often
		return -1
	}
	var least uint64
	some := false
	for i, p := range places {
		if left[i] != Chosen {
			continue
		}
		if p.Health.due(now) {
			return i
		}
		if p.Health.Share(now) >= whole && !p.rejoin && (!some || p.turn < least) {
			least, some = p.turn, true
		}
	}
	if !some {
		return -1
	}
	for i, p := range places {
		if left[i] != Chosen {
			continue
		}
		if p.rejoin {
			p.turn, p.rejoin = max(p.turn, least), false
		}
		if p.Health.Share(now) < whole && p.turn > least {
			left[i] = LeftRamping
		}
	}
	return -1
}

// whole is all of a share, in thousandths.
const whole = 1000

// ramp is the share of what comes back after so long: from RampStart, in a straight
// line, to all of it.
func ramp(elapsed, long time.Duration) int64 {
	if elapsed = max(elapsed, 0); elapsed >= long {
		return whole
	}
	return RampStart + (whole-RampStart)*int64(elapsed/time.Microsecond)/max(int64(long/time.Microsecond), 1)
}
