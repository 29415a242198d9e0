package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sluice/internal/tabletop"
)

// ProgressOptions is how progress is shown.
type ProgressOptions struct {
	Policy  string // what is being run
	Width   int    // columns of the terminal; 80 if 0
	Redraw  bool   // w is a terminal: one line, drawn over; else a line for each tenth
	Unicode bool
}

// Progress is the line, without its end, that says how far a run is after the
// elapsed time of the wall clock: the share done, virtual time, requests, and
// how long the rest will take at this pace.
func Progress(p tabletop.Progress, elapsed time.Duration, o ProgressOptions) string {
	if o.Width == 0 {
		o.Width = 80
	}
	done := 0.0
	if p.Of > 0 {
		done = min(1, max(0, float64(p.Now)/float64(p.Of)))
	}
	says := fmt.Sprintf("%3.0f%%  %s of %s  %s requests", 100*done, moment(p.Now), moment(p.Of), count(p.Requests))
	switch {
	case done >= 1:
		says += "  took " + duration(elapsed).String()
	case done > 0.01:
		says += "  " + duration(time.Duration(float64(elapsed)*(1-done)/done)).String() + " left"
	}
	k := ink{unicode: o.Unicode}
	line := left(clean(o.Policy), min(16, max(8, width(o.Policy)))) + " "
	if room := o.Width - width(line) - width(says) - 4; o.Redraw && room >= 8 {
		room = min(room, 40)
		full := int(done * float64(room))
		line += "│" + strings.Repeat("█", full) + strings.Repeat("░", room-full) + "│ "
	}
	return k.text(cut(line+says, o.Width-1))
}

// Meter writes progress as a run goes on. It belongs to one goroutine.
type Meter struct {
	w     io.Writer
	o     ProgressOptions
	shown int // tenths written; of a redrawn line whether there is one
}

// NewMeter makes a meter that writes to w, which is standard error as a rule:
// what it cannot write it leaves out.
func NewMeter(w io.Writer, o ProgressOptions) *Meter { return &Meter{w: w, o: o} }

// Show says how far the run is. Off a terminal it writes at most eleven lines.
func (m *Meter) Show(p tabletop.Progress, elapsed time.Duration) {
	line := Progress(p, elapsed, m.o)
	if m.o.Redraw {
		m.shown = 1
		fmt.Fprintf(m.w, "\r%s\x1b[K", line)
		return
	}
	tenth := 1
	if p.Of > 0 {
		tenth += int(10 * p.Now / p.Of)
	}
	if tenth > m.shown {
		m.shown = tenth
		fmt.Fprintln(m.w, line)
	}
}

// Done takes the redrawn line away, so that what follows stands on a clean one.
func (m *Meter) Done() {
	if m.o.Redraw && m.shown > 0 {
		fmt.Fprint(m.w, "\r\x1b[K")
		m.shown = 0
	}
}
