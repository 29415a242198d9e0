package fleet

import "time"

// minuteUnits scales a bucket's level so that a nanosecond refills perMinute
// units exactly.
const minuteUnits = int64(time.Minute)

// mostPerMinute keeps perMinute × minuteUnits within 64 bits.
const mostPerMinute = 100_000_000

// bucket is a rate per minute with a burst of one minute. A job larger than the
// burst is taken from a full bucket and leaves a debt.
type bucket struct {
	perMinute int64
	level     int64 // in amount × minuteUnits
	at        time.Time
}

func (b *bucket) refill(now time.Time) {
	if b.perMinute <= 0 || !now.After(b.at) {
		return
	}
	full := b.perMinute * minuteUnits
	missing := full - b.level
	d := int64(now.Sub(b.at))
	if b.at.IsZero() || d >= missing/b.perMinute {
		b.level = full
	} else {
		b.level += d * b.perMinute
	}
	b.at = now
}

// wait is how long until n fit; 0 if they do.
func (b *bucket) wait(now time.Time, n int64) time.Duration {
	if b.perMinute <= 0 {
		return 0
	}
	b.refill(now)
	missing := min(n, b.perMinute)*minuteUnits - b.level
	if missing <= 0 {
		return 0
	}
	return time.Duration((missing + b.perMinute - 1) / b.perMinute)
}

func (b *bucket) take(n int64) {
	if b.perMinute > 0 {
		b.level -= n * minuteUnits
	}
}

func (b *bucket) state(now time.Time) (int64, time.Duration) {
	if b.perMinute <= 0 {
		return 0, 0
	}
	b.refill(now)
	missing := b.perMinute*minuteUnits - b.level
	return max(b.level/minuteUnits, 0), time.Duration(max(missing, 0) / b.perMinute)
}
