package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sluice/internal/admin"
)

// dryRun is the flag of what changes something.
type dryRun struct {
	DryRun bool `help:"Check everything and print the result, but change nothing."`
}

// said tells on standard error what was done, or that nothing was.
func (d dryRun) said(w io.Writer, done string, args ...any) {
	if d.DryRun {
		fmt.Fprintln(w, "dry run: nothing has changed")
		return
	}
	fmt.Fprintln(w, plain(fmt.Sprintf(done, args...)))
}

// warn tells on standard error what is valid but looks wrong.
func warn(env *Env, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(env.Stderr, "warning: "+plain(w))
	}
}

// limitsFlag reads --limit NAME=AMOUNT flags.
func limitsFlag(m map[string]string) admin.Limits {
	if len(m) == 0 {
		return nil
	}
	out := make(admin.Limits, len(m))
	for name, text := range m {
		out[name] = admin.ParseAmount(text)
	}
	return out
}

// some is a number that may not be there.
func some(n *int64) string {
	if n == nil {
		return ""
	}
	return count(*n)
}

// limitsText writes limits on one line, by name.
func limitsText(l admin.Limits) string {
	names := make([]string, 0, len(l))
	for n := range l {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = n + "=" + l[n].String()
	}
	return strings.Join(names, " ")
}

// names is a list flag, nil when it was not given: an empty text clears it.
func names(in []string) *[]string {
	if in == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" })
	return &out
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// join writes a list that may be absent.
func join(p *[]string) string { return strings.Join(deref(p), " ") }

// stamp writes a time for people, in UTC.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// span writes seconds for people.
func span(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// change sends one change and decodes what has become of it.
func change[T any](ctx context.Context, conn *connection, r request) (T, error) {
	var out T
	c, err := conn.client()
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, r.method, r.path, dry(r.dry), r.body, &out)
}

// request is one change.
type request struct {
	method, path string
	dry          bool
	body         any
}
