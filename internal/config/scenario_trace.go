package config

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sluice"
	"sluice/internal/replay"
	"sluice/internal/tabletop"
)

// open opens a file beside the scenario.
func (r *reader) open(name string) (io.ReadCloser, error) {
	if r.o.Open != nil {
		return r.o.Open(path.Join(path.Dir(filepath.ToSlash(r.d.file)), name))
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(r.d.file), name)
	}
	return openRegular(name)
}

// openRegular opens what can neither block nor go on for ever.
func openRegular(name string) (io.ReadCloser, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return os.Open(name)
}

// trace reads the recording that a source names.
func (r *reader) trace(at string, in *Trace, until time.Duration) []tabletop.Row {
	if in.Scale < 0 || in.Scale > 10_000 {
		r.fail(join(at, "scale"), "write a number above 0, at most 10000", "%g is no speed", in.Scale)
	}
	if !r.onlyOne(at, map[string]bool{"file": in.File != "", "shape": in.Shape != ""}) {
		return nil
	}
	if in.Shape != "" {
		rows, err := replay.Synthesise(in.Shape, replay.ReadOptions{Seed: 1, Limit: limitOf(in), Until: until})
		if err != nil {
			r.fail(join(at, "shape"), suggest(in.Shape, replay.Shapes()), "%q is not a shape", in.Shape)
			return nil
		}
		return rowsOf(rows, in.Client)
	}
	path := join(at, "file")
	rows, err := readTrace(in.File, in, until, r.open)
	if p, ok := errors.AsType[Problem](err); ok {
		r.elsewhere = append(r.elsewhere, p)
		return nil
	} else if err != nil {
		r.fail(path, "give the path of a trace, relative to the scenario", "cannot read %s: %s", in.File, reasonOf(err))
		return nil
	}
	return r.some(path, in, rows)
}

// given reads the recording that a run puts in place of a source's arrivals.
func (r *reader) given(file string, in *Trace, until time.Duration) []tabletop.Row {
	rows, err := readTrace(file, in, until, openRegular)
	p, ok := errors.AsType[Problem](err)
	if err != nil && !ok {
		p = Problem{File: file, Cause: "cannot read the trace: " + reasonOf(err), Fix: "give the path of a trace file"}
	}
	if err != nil {
		r.elsewhere = append(r.elsewhere, p)
		return nil
	}
	if out := rowsOf(rows, in.Client); len(out) > 0 {
		return out
	}
	r.elsewhere = append(r.elsewhere, Problem{File: file, Cause: fmt.Sprintf("the trace has no rows of client %q", in.Client), Fix: "remove client from the scenario's trace"})
	return nil
}

func (r *reader) some(at string, in *Trace, rows []replay.Row) []tabletop.Row {
	out := rowsOf(rows, in.Client)
	if len(out) == 0 {
		r.fail(at, "name a client of the trace, or none", "%s has no rows of client %q", in.File, in.Client)
	}
	return out
}

func limitOf(in *Trace) int {
	if in.Limit > 0 && in.Limit < MaxTraceRows {
		return int(in.Limit)
	}
	return MaxTraceRows
}

// readTrace reads a trace file. A bad row is a Problem with the trace's file and
// line. Rows that are drawn from rates end with what can be played: a day of them may
// be more than any file holds.
func readTrace(file string, in *Trace, until time.Duration, open func(string) (io.ReadCloser, error)) ([]replay.Row, error) {
	f, err := open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o := replay.ReadOptions{Seed: 1, Limit: limitOf(in)}
	if in.Columns != nil {
		units := map[TimeUnit]time.Duration{"ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}
		o.Columns = &replay.Columns{At: in.Columns.At, Input: in.Columns.Input, Output: in.Columns.Output, Client: in.Columns.Client, Unit: units[in.Columns.Unit]}
	}
	if rates, ok := strings.CutSuffix(file, "_rates.csv"); ok { // of ServeGen, with the lengths beside it
		o.Until = until
		if lengths, err := open(rates + "_lengths.csv"); err == nil {
			defer lengths.Close()
			o.Lengths = io.LimitReader(lengths, maxTrace)
		}
	}
	rows, err := replay.Read(io.LimitReader(f, maxTrace), o)
	if err == nil {
		return rows, nil
	}
	p := Problem{File: file, Cause: err.Error(), Fix: "name its columns: columns: {at: …, input: …, output: …}"}
	if line, ok := errors.AsType[*replay.LineError](err); ok {
		p.Pos, p.Cause = Pos{Line: line.Line, Col: 1}, line.Err.Error()
		if line.Line > 1 {
			p.Fix = "mend the row, or remove it"
		}
	}
	return nil, p
}

// rowsOf are the rows of a client, or all.
func rowsOf(rows []replay.Row, client string) []tabletop.Row {
	var out []tabletop.Row
	for i := range rows {
		row := &rows[i]
		if client != "" && row.Client != client {
			continue
		}
		x := tabletop.Row{At: row.At, Input: sluice.Tokens(row.Input), Output: sluice.Tokens(row.Output), Line: row.Line}
		if len(row.Blocks) > 0 {
			x.Blocks = chained(row.Blocks)
		}
		out = append(out, x)
	}
	return out
}

// chained are hashes of a prompt's blocks, each with all that stand before it.
func chained(blocks []int64) []uint64 {
	h := fnv.New64a()
	out := make([]uint64, len(blocks))
	for i, b := range blocks {
		var text [8]byte
		for k := range text {
			text[k] = byte(b >> (8 * k))
		}
		h.Write(text[:])
		out[i] = h.Sum64()
	}
	return out
}
