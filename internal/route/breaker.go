package route

import "time"

// BreakerPolicy is when a backend is left alone, and how it comes back. Zero
// fields take the defaults, but for FirstToken and Rate, of which zero is none.
type BreakerPolicy struct {
	Failures int64         // in a row, that open a breaker
	Share    int64         // thousandths of the attempts that ended within Window: as many failures open it
	Volume   int64         // attempts within Window below which Share says nothing
	Window   time.Duration // of Share
	Cooldown time.Duration // before an open one gets its probe
	Ramp     time.Duration // from the probe's success to the whole share
	Domain   int64         // thousandths of a failure domain's backends: as many open breakers, at least two, open the domain's

	FirstToken time.Duration // a stream whose first token comes later counts as slow
	Rate       int64         // an answer with fewer tokens per second after its first counts as slow
}

// Defaults of BreakerPolicy. A backend that fails one attempt in ten fails five
// in a row once in 100,000 attempts, and three in a row once in a thousand: fewer
// than five would put backends aside that work.
const (
	DefaultFailures    = 5
	DefaultBreakShare  = 500 // 50 %
	DefaultBreakVolume = 20
	DefaultBreakWindow = 30 * time.Second
	Cooldown           = 10 * time.Second
	DefaultRamp        = 30 * time.Second
	DefaultDomainShare = 600 // 60 %
)

// Bounds of BreakerPolicy.
const (
	MaxFailures    = 1000
	MaxBreakVolume = 1_000_000
	MaxBreakTime   = time.Hour // of Window, Cooldown and Ramp
)

// RampStart is the share, in thousandths, that a backend starts its ramp with.
const RampStart = 100

// MaxPause is the longest pause that a backend or a provider can ask for.
const MaxPause = 5 * time.Minute

// WithDefaults fills zero fields.
func (p BreakerPolicy) WithDefaults() BreakerPolicy {
	for _, f := range []struct {
		field *int64
		to    int64
	}{{&p.Failures, DefaultFailures}, {&p.Share, DefaultBreakShare}, {&p.Volume, DefaultBreakVolume}, {&p.Domain, DefaultDomainShare}} {
		if *f.field == 0 {
			*f.field = f.to
		}
	}
	for _, f := range []struct {
		field *time.Duration
		to    time.Duration
	}{{&p.Window, DefaultBreakWindow}, {&p.Cooldown, Cooldown}, {&p.Ramp, DefaultRamp}} {
		if *f.field == 0 {
			*f.field = f.to
		}
	}
	return p
}

// inRange reports whether every field is within its bounds.
func (p *BreakerPolicy) inRange() bool {
	for _, d := range []time.Duration{p.Window, p.Cooldown, p.Ramp} {
		if d < 0 || d > MaxBreakTime {
			return false
		}
	}
	return p.Failures >= 0 && p.Failures <= MaxFailures && p.Share >= 0 && p.Share <= 1000 && p.Volume >= 0 && p.Volume <= MaxBreakVolume &&
		p.Domain >= 0 && p.Domain <= 1000 && p.FirstToken >= 0 && p.Rate >= 0
}

// numOutcomes is into how many parts a window of outcomes is cut.
const numOutcomes = 10

// outcomes counts how attempts ended over the last window, of which the oldest
// part, a tenth, goes at once.
type outcomes struct {
	buckets       [numOutcomes]struct{ ended, failed uint32 }
	at            int64 // the newest part
	ended, failed int64
}

// add counts one end in a part.
func (o *outcomes) add(at int64, failed bool) {
	if at-o.at >= numOutcomes {
		*o = outcomes{at: at}
	}
	for o.at < at {
		o.at++
		b := &o.buckets[o.at%numOutcomes] // was the oldest
		o.ended -= int64(b.ended)
		o.failed -= int64(b.failed)
		b.ended, b.failed = 0, 0
	}
	b := &o.buckets[o.at%numOutcomes]
	b.ended++
	o.ended++
	if failed {
		b.failed++
		o.failed++
	}
}

// over reports whether so many failed that the share says so.
func (o *outcomes) over(p *BreakerPolicy) bool {
	return o.ended >= p.Volume && o.failed*1000 >= p.Share*o.ended
}
