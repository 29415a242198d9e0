package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ReadOptions tune what a trace leaves open.
type ReadOptions struct {
	Seed  uint64        // of arrivals and lengths that are synthesised
	Rate  float64       // requests per second of traces that have no times; 0 means 1
	Until time.Duration // window of trace time; 0 reads all
	Limit int           // rows; 0 reads all
	// Lengths is the second file of a ServeGen trace.
	Lengths io.Reader
	// Columns reads a trace of no known format; nil tells the format by the first
	// line.
	Columns *Columns
}

// LineError is a trace line that cannot be read.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// syntheticPrefix before a shape's name stands for a file that is made up.
const syntheticPrefix = "synthetic:"

// Open reads the trace at path, or makes one for "synthetic:SHAPE". A ServeGen
// rates file takes its lengths from the file beside it.
func Open(path string, o ReadOptions) ([]Row, error) {
	if shape, ok := strings.CutPrefix(path, syntheticPrefix); ok {
		return Synthesise(shape, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer f.Close()
	if dir, name := filepath.Split(path); strings.HasSuffix(name, "_rates.csv") {
		lengths, err := os.Open(filepath.Join(dir, strings.TrimSuffix(name, "_rates.csv")+"_lengths.csv"))
		if err == nil {
			defer lengths.Close()
			o.Lengths = lengths
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("open lengths: %w", err)
		}
	}
	rows, err := Read(f, o)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return rows, nil
}

// maxLine bounds a line of a trace: the longest known, of block ids, has 4 KB.
const maxLine = 1 << 20

// Read reads a trace of any known format, told by its first line, and returns
// its rows in order of time. Errors are *LineError where a line is to blame.
func Read(r io.Reader, o ReadOptions) ([]Row, error) {
	l := newLines(r)
	first, ok := l.next()
	if !ok {
		if err := l.err(); err != nil {
			return nil, err
		}
		return nil, errors.New("the trace is empty")
	}
	var rows []Row
	var err error
	switch {
	case o.Columns != nil:
		rows, err = readColumns(l, first, o)
	case first[0] == '{':
		rows, err = readJSON(l, first, o)
	default:
		rows, err = readCSV(l, string(first), o)
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("the trace has no rows")
	}
	Sort(rows)
	return Cut(rows, o.Until, o.Limit), nil
}

// lines reads non-empty lines and knows their numbers.
type lines struct {
	sc *bufio.Scanner
	n  int
}

func newLines(r io.Reader) *lines {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	return &lines{sc: sc}
}

func (l *lines) next() ([]byte, bool) {
	for l.sc.Scan() {
		l.n++
		b := l.sc.Bytes()
		if l.n == 1 {
			b = bytes.TrimPrefix(b, []byte("\ufeff"))
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			return b, true
		}
	}
	return nil, false
}

func (l *lines) err() error {
	if err := l.sc.Err(); err != nil {
		return l.at(fmt.Errorf("read: %w", err))
	}
	return nil
}

func (l *lines) at(err error) error { return &LineError{l.n, err} }

// table is a CSV trace format: the columns it needs, by header name, and how a
// row is made of them.
type table struct {
	name    string
	columns []string
	row     func(f fields) (Row, error)
	timed   bool // its rows have times
}

// fields are one line's values in the order of the table's columns.
type fields []string

var tables = []table{
	{"azure", []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, azureRow, true},
	{"vtc", []string{"req_time_s", "client", "prompt_len", "output_len"}, vtcRow, true},
	{"burstgpt", []string{"Timestamp", "Model", "Request tokens", "Response tokens"}, burstRow, true},
	{"vidur", []string{"num_prefill_tokens", "num_decode_tokens"}, vidurRow, false},
}

func readCSV(l *lines, header string, o ReadOptions) ([]Row, error) {
	names := split(header)
	if at, ok := columnsOf(names, rateColumns); ok {
		return readServeGen(l, at, o)
	}
	for _, t := range tables {
		if at, ok := columnsOf(names, t.columns); ok {
			return t.read(l, at, o)
		}
	}
	return nil, l.at(fmt.Errorf("unknown trace format: the columns are %q; known are Azure, Mooncake, Qwen, VTC, ServeGen, Vidur, BurstGPT and the own JSONL", names))
}

func split(line string) []string {
	out := strings.Split(line, ",")
	for i := range out {
		out[i] = strings.Trim(strings.TrimSpace(out[i]), `"`)
	}
	return out
}

// columnsOf finds the positions of the wanted columns.
func columnsOf(names, wanted []string) ([]int, bool) {
	var at []int
	for _, w := range wanted {
		found := -1
		for i, n := range names {
			if strings.EqualFold(n, w) {
				found = i
			}
		}
		if found < 0 {
			return nil, false
		}
		at = append(at, found)
	}
	return at, true
}

// pick takes the wanted columns out of a line.
func (l *lines) pick(line []byte, at []int) (fields, error) {
	all := split(string(line))
	out := make(fields, len(at))
	for i, c := range at {
		if c >= len(all) {
			return nil, l.at(fmt.Errorf("has %d columns, column %d is wanted", len(all), c+1))
		}
		out[i] = all[c]
	}
	return out, nil
}

func (t table) read(l *lines, at []int, o ReadOptions) ([]Row, error) {
	var rows []Row
	arrivals := newArrivals(o)
	base := time.Duration(-1)
	for line, ok := l.next(); ok; line, ok = l.next() {
		f, err := l.pick(line, at)
		if err != nil {
			return nil, err
		}
		row, err := t.row(f)
		if err != nil {
			return nil, l.at(err)
		}
		if row.Input == 0 && row.Output == 0 {
			continue
		}
		row.Input, row.Output = max(row.Input, 1), max(row.Output, 1)
		if !t.timed {
			row.At = arrivals.next()
		}
		if base < 0 {
			base = row.At
		}
		row.At = max(row.At-base, 0)
		if rows, err = l.add(rows, row); err != nil {
			return nil, err
		}
		if done(rows, o) {
			break
		}
	}
	return rows, l.err()
}

func (l *lines) add(rows []Row, row Row) ([]Row, error) {
	if len(rows) == MaxRows {
		return nil, l.at(fmt.Errorf("the trace has more than %d rows: bound it", MaxRows))
	}
	row.Line = l.n
	return append(rows, row), nil
}

// done tells that no later line can matter: traces are nearly in order, so a
// minute of disorder is allowed.
func done(rows []Row, o ReadOptions) bool {
	if o.Until > 0 && len(rows) > 0 && rows[len(rows)-1].At > o.Until+time.Minute {
		return true
	}
	return o.Limit > 0 && len(rows) >= o.Limit+10_000
}

func azureRow(f fields) (Row, error) {
	at, err := time.Parse("2006-01-02 15:04:05.9999999", f[0])
	if err != nil {
		return Row{}, fmt.Errorf("TIMESTAMP %q: write it as 2023-11-16 18:15:46.6805900", f[0])
	}
	return tokensRow(at.Sub(time.Unix(0, 0)), f[1], f[2])
}

func vtcRow(f fields) (Row, error) {
	at, err := seconds(f[0])
	if err != nil {
		return Row{}, err
	}
	row, err := tokensRow(at, f[2], f[3])
	row.Client = f[1]
	return row, err
}

// burstRow skips failed requests (no response tokens) by leaving the row empty.
func burstRow(f fields) (Row, error) {
	at, err := seconds(f[0])
	if err != nil {
		return Row{}, err
	}
	row, err := tokensRow(at, f[2], f[3])
	if row.Output == 0 {
		row.Input = 0
	}
	row.Task = strings.ToLower(strings.ReplaceAll(f[1], " ", "-"))
	return row, err
}

func vidurRow(f fields) (Row, error) { return tokensRow(0, f[0], f[1]) }

func tokensRow(at time.Duration, input, output string) (Row, error) {
	in, err := count(input)
	if err != nil {
		return Row{}, err
	}
	out, err := count(output)
	return Row{At: at, Input: in, Output: out}, err
}

// maxTokens bounds a row's counts.
const maxTokens = 10_000_000

func count(s string) (int64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n <= maxTokens) {
		return 0, fmt.Errorf("token count %q: write a number from 0 to %d", s, maxTokens)
	}
	return int64(n), nil
}

func seconds(s string) (time.Duration, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("time %q: write seconds", s)
	}
	return span(v)
}

// span turns seconds into a duration, refusing what is negative or beyond ten
// years.
func span(s float64) (time.Duration, error) {
	if !(s >= 0 && s < 10*365*86400) {
		return 0, fmt.Errorf("time %g s is out of range", s)
	}
	return time.Duration(s * float64(time.Second)), nil
}
