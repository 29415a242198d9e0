package tabletop

import (
	"time"

	"sluice"
)

// Process is the law of the times between arrivals.
type Process uint8

// The processes.
const (
	Poisson Process = iota
	Even            // the same time between any two
	Gamma           // bursts: CV above 1
	Weibull         // likewise, with a heavier tail
	Trace           // the rows of a recording
)

// Arrivals is when requests come.
type Arrivals struct {
	Process Process
	Rate    float64       // mean, per second; of a Trace: times the recording's
	CV      float64       // coefficient of variation of the times between arrivals: Gamma, Weibull
	Start   time.Duration // first moment
	Stop    time.Duration // last; 0 the scenario's
	Day     Day           // the rate over the day
	Pulse   Pulse         // on and off
	Rows    []Row         // of a Trace, by time
	Loop    bool          // a Trace begins again at its end
}

// Day is a rate that swings like a cosine: from Rate/Peak… at its lowest to
// Rate·Peak at its highest, Rate being its mean.
type Day struct {
	Period time.Duration // 0: the rate is constant
	Swing  float64       // from 0 to 1: the rate goes from 1−Swing to 1+Swing times its mean
	Peak   time.Duration // when it is highest
}

// Pulse passes the arrivals of the first On of each On+Off.
type Pulse struct{ On, Off time.Duration }

// Row is one line of a recording.
type Row struct {
	At     time.Duration
	Input  sluice.Tokens
	Output sluice.Tokens
	Blocks []uint64 // chained hashes of the prompt's blocks; nil if not recorded
	Line   int      // in its file
}

// Shape is the law of a length.
type Shape uint8

// The shapes.
const (
	Fixed     Shape = iota // Mean
	Uniform                // from Min to Max
	LogNormal              // by P50 and P99
	Quantiles              // piecewise linear between Points
	Mixed                  // one of Parts
)

// Lengths is how many tokens, drawn for each request.
type Lengths struct {
	Shape    Shape
	Mean     sluice.Tokens
	Min, Max sluice.Tokens // what is drawn is held within; 0 does not bound
	P50, P99 sluice.Tokens
	Points   []Quantile
	Parts    []Part
}

// Quantile is a length that a permille of requests do not exceed.
type Quantile struct {
	Permille int64
	Tokens   sluice.Tokens
}

// Part is one of several laws, drawn with a probability.
type Part struct {
	Permille int64 // of all parts together 1000
	Lengths  Lengths
}
