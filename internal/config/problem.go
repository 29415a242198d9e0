package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a file. Lines and columns count from 1, columns in
// characters. The zero Pos is nowhere.
type Pos struct{ Line, Col int }

// Problem is one thing that is wrong with a configuration, or questionable.
type Problem struct {
	File string
	Pos
	Path  string // of the value, such as pools.chat-eu.backends[0].weight; empty for the whole file
	Cause string // what is wrong
	Fix   string // how to mend it; empty if the cause says it
}

// Where is the place: file, line, column and path, as far as there are such.
func (p Problem) Where() string {
	s := p.File
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", s, p.Line, p.Col)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s
}

func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Where() + ": " + p.Cause)
	if p.Fix != "" {
		b.WriteString("\n    fix: " + p.Fix)
	}
	return b.String()
}

// Problems is all that is wrong, in the order of the file. As an error it
// prints one problem after the other.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each problem to errors.As.
func (ps Problems) Unwrap() []error {
	out := make([]error, len(ps))
	for i, p := range ps {
		out[i] = p
	}
	return out
}

// sort orders by place and drops what is said twice.
func (ps *Problems) sort() {
	slices.SortStableFunc(*ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Path, b.Path))
	})
	*ps = slices.Compact(*ps)
}

// valueError is an error of one value that knows its fix.
type valueError struct{ cause, fix string }

func (e *valueError) Error() string { return e.cause }

func wrong(fix, cause string, args ...any) error {
	return &valueError{cause: fmt.Sprintf(cause, args...), fix: fix}
}

// suggest is a fix that names the nearest of the known words, or lists them.
func suggest(word string, known []string) string {
	best, distance := "", max(len(word)/3, 1)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) == 0:
		return "declare it: there is none yet"
	case len(known) > 24:
		return fmt.Sprintf("use one of %s, …", strings.Join(known[:24], ", "))
	}
	return "use one of " + strings.Join(known, ", ")
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	const longest = 64 // no name is longer; it bounds the work on hostile files
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	var before, last, row [longest + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
