package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sluice/internal/tabletop"
	"sluice/internal/tabletop/report"
)

func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		name    string
		p       tabletop.Progress
		elapsed time.Duration
		o       report.ProgressOptions
		want    string
	}{
		{"start", tabletop.Progress{Of: 10 * time.Minute}, 0, report.ProgressOptions{Policy: "sluice"}, "sluice     0%  0 of 10m  0 requests"},
		{"middle", tabletop.Progress{Now: 150 * time.Second, Of: 10 * time.Minute, Requests: 12_345}, 2 * time.Second, report.ProgressOptions{Policy: "sluice"}, "sluice    25%  2m30s of 10m  12,345 requests  6.00 s left"},
		{"bar", tabletop.Progress{Now: 5 * time.Minute, Of: 10 * time.Minute, Requests: 9}, time.Second, report.ProgressOptions{Policy: "naive", Width: 80, Redraw: true}, "naive    |#############..............|  50%  5m of 10m  9 requests  1.00 s left"},
		{"unicode", tabletop.Progress{Now: 5 * time.Minute, Of: 10 * time.Minute}, time.Second, report.ProgressOptions{Width: 70, Redraw: true, Unicode: true}, "         │████████░░░░░░░░░│  50%  5m of 10m  0 requests  1.00 s left"},
		{"narrow", tabletop.Progress{Now: 5 * time.Minute, Of: 10 * time.Minute}, time.Second, report.ProgressOptions{Policy: "sluice", Width: 40, Redraw: true}, "sluice    50%  5m of 10m  0 requests  ~"},
		{"end", tabletop.Progress{Now: 11 * time.Minute, Of: 10 * time.Minute, Requests: 2_000_000}, 90 * time.Second, report.ProgressOptions{Policy: "sluice"}, "sluice   100%  11m of 10m  2.00M requests  took 90.0 s"},
		{"nothing", tabletop.Progress{}, 0, report.ProgressOptions{Policy: "x\x1b"}, "x?         0%  0 of 0  0 requests"},
	} {
		if got := report.Progress(tt.p, tt.elapsed, tt.o); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestMeterWritesFewLines(t *testing.T) {
	show := func(o report.ProgressOptions) string {
		var b bytes.Buffer
		m := report.NewMeter(&b, o)
		for i := range 1001 {
			m.Show(tabletop.Progress{Now: time.Duration(i) * time.Second, Of: 1000 * time.Second, Requests: int64(i)}, time.Duration(i)*time.Millisecond)
		}
		m.Done()
		return b.String()
	}
	if got := show(report.ProgressOptions{Policy: "sluice"}); strings.Count(got, "\n") != 11 || strings.ContainsAny(got, "\r\x1b") {
		t.Errorf("off a terminal: got %d lines, want 11 plain ones:\n%q", strings.Count(got, "\n"), got)
	}
	if got := show(report.ProgressOptions{Policy: "sluice", Redraw: true}); strings.Contains(got, "\n") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("on a terminal: want one line, drawn over and taken away, got the end %q", got[max(0, len(got)-80):])
	}
}
