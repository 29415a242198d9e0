package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/tabletop"
)

// Event is something that happens at a moment: one of traffic, lose, down, up,
// slow, fail, apply.
type Event struct {
	At    Duration `json:"at" jsonschema:"when"`
	Label string   `json:"label,omitempty" jsonschema:"on the timeline; made up if left out"`
	Phase string   `json:"phase,omitempty" jsonschema:"name of a phase that begins here: the report and expectations tell phases apart"`

	Traffic *Change  `json:"traffic,omitempty" jsonschema:"sources send otherwise from then on"`
	Lose    *Loss    `json:"lose,omitempty" jsonschema:"a share of the backends dies: {share: 25%, pool: chat}"`
	Down    Names    `json:"down,omitempty" jsonschema:"these backends, or all of these pools, die: what runs there fails"`
	Up      Names    `json:"up,omitempty" jsonschema:"they come back, as new"`
	Slow    *Slow    `json:"slow,omitempty" jsonschema:"they go on at another speed"`
	Fail    *Failing `json:"fail,omitempty" jsonschema:"they answer, and fail, from then on"`
	Apply   *Patch   `json:"apply,omitempty" jsonschema:"the gateway's configuration is reloaded with these changes, on top of those before"`
}

// Change is what sources send from then on; what is left out stays.
type Change struct {
	Sources Names    `json:"sources,omitempty" jsonschema:"names of sources, all if left out"`
	Rate    *float64 `json:"rate,omitempty" jsonschema:"times the source's own rate; 0 stops it"`
	Input   *Lengths `json:"input,omitempty" jsonschema:"as at the source"`
	Output  *Lengths `json:"output,omitempty" jsonschema:"as at the source"`
	Client  *Client  `json:"client,omitempty" jsonschema:"as at the source, as a whole"`
}

// Loss is a share of backends.
type Loss struct {
	Share Share  `json:"share" jsonschema:"how many, rounded to the nearest, at least one: the last of each pool"`
	Pool  string `json:"pool,omitempty" jsonschema:"of this pool; of each if left out"`
}

// Slow is backends at another speed.
type Slow struct {
	Backends Names `json:"backends" jsonschema:"backends or pools"`
	Speed    Share `json:"speed" jsonschema:"of their own: 40%; 100% is well again"`
}

// Failing is backends that fail.
type Failing struct {
	Backends Names      `json:"backends" jsonschema:"backends or pools"`
	Share    Share      `json:"share" jsonschema:"of attempts; 0% ends it"`
	Reason   FailReason `json:"reason,omitempty" jsonschema:"upstream_error (5xx) if left out"`
	After    Duration   `json:"after,omitempty" jsonschema:"how long the failure takes to show"`
}

func (f *Failing) setDefaults() { f.Reason = "upstream_error" }

// FailReason is how an attempt fails.
type FailReason string

func (FailReason) words() []string {
	return []string{"upstream_error", "upstream_limited", "upstream_connect", "upstream_timeout", "upstream_stalled", "upstream_truncated"}
}

// events compiles a list of events, in order of time.
func (r *reader) events(path string, in []Event) []tabletop.Event {
	var out []tabletop.Event
	seen := map[string]bool{tabletop.PhaseBefore: true, tabletop.PhaseWhole: true}
	for _, e := range inOrder(path, in) {
		if t := time.Duration(e.At); t > r.out.Length+r.out.Drain {
			r.fail(join(e.path, "at"), "write a moment within length and drain", "%s is after the end", e.At)
		}
		r.phase(e, seen)
		x := tabletop.Event{At: time.Duration(e.At), Label: e.Label, Phase: e.Phase}
		label := r.event(e, &x)
		x.Label = cmp.Or(x.Label, label)
		out = append(out, x)
	}
	return out
}

// phase checks the name of the phase that an event begins.
func (r *reader) phase(e placed, seen map[string]bool) {
	at := join(e.path, "phase")
	switch {
	case e.Phase == "":
	case strings.HasPrefix(e.path, "acts"):
		r.fail(at, "begin it with an event of the scenario, so that runs with the act and without can be compared", "an act begins no phase")
	case !phaseName(e.Phase):
		r.fail(at, "write a word of letters, digits and hyphens", "%q cannot name a phase", e.Phase)
	case seen[e.Phase]:
		r.fail(at, "name it otherwise", "there is a phase %q already", e.Phase)
	}
	seen[e.Phase] = true
}

func phaseName(s string) bool {
	return len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// event fills in what happens, and has words for it.
func (r *reader) event(e placed, x *tabletop.Event) string {
	if !r.onlyOne(e.path, map[string]bool{
		"traffic": e.Traffic != nil, "lose": e.Lose != nil, "down": e.Down != nil, "up": e.Up != nil, "slow": e.Slow != nil, "fail": e.Fail != nil, "apply": e.Apply != nil,
	}) {
		return ""
	}
	switch {
	case e.Traffic != nil:
		x.Traffic = r.change(join(e.path, "traffic"), e.Traffic)
		return "traffic changes: " + cmp.Or(strings.Join(e.Traffic.Sources, ", "), "all")
	case e.Lose != nil:
		x.Backends = &tabletop.Backends{IDs: r.lost(join(e.path, "lose"), e.Lose), Down: true}
		return fmt.Sprintf("%s lost: %s", e.Lose.Share, listed(x.Backends.IDs))
	case e.Down != nil:
		x.Backends = &tabletop.Backends{IDs: r.served(join(e.path, "down"), e.Down), Down: true}
		return "down: " + strings.Join(e.Down, ", ")
	case e.Up != nil:
		x.Backends = &tabletop.Backends{IDs: r.served(join(e.path, "up"), e.Up), Up: true}
		return "up: " + strings.Join(e.Up, ", ")
	case e.Slow != nil:
		at := join(e.path, "slow")
		x.Backends = &tabletop.Backends{IDs: r.served(join(at, "backends"), e.Slow.Backends), Speed: int64(e.Slow.Speed)}
		r.between(join(at, "speed"), float64(e.Slow.Speed)/10, 1, 100)
		return fmt.Sprintf("%s at %s of their speed", strings.Join(e.Slow.Backends, ", "), e.Slow.Speed)
	case e.Fail != nil:
		return r.failing(join(e.path, "fail"), e.Fail, x)
	default:
		v, ok := r.versions[e.path]
		if !ok || v == 0 {
			return ""
		}
		for i := range r.policies {
			x.Apply = append(x.Apply, r.policies[i].tables[v])
		}
		return "configuration changes"
	}
}

func (r *reader) failing(at string, in *Failing, x *tabletop.Event) string {
	f := &tabletop.Fail{Permille: int64(in.Share), After: time.Duration(in.After)}
	if err := f.Reason.UnmarshalText([]byte(in.Reason)); err != nil && !r.brokenAt(at) {
		r.fail(join(at, "reason"), "", "%s", err)
	}
	x.Backends = &tabletop.Backends{IDs: r.served(join(at, "backends"), in.Backends), Fail: f}
	if in.Share == 0 {
		return strings.Join(in.Backends, ", ") + " well again"
	}
	return fmt.Sprintf("%s of attempts fail at %s: %s", in.Share, strings.Join(in.Backends, ", "), in.Reason)
}

// change compiles what sources send from then on.
func (r *reader) change(at string, in *Change) *tabletop.Traffic {
	out := &tabletop.Traffic{Rate: in.Rate}
	for i, name := range in.Sources {
		s, ok := r.sources[name]
		if !ok {
			r.fail(index(join(at, "sources"), i), suggest(name, sorted(r.sources)), "there is no source %q", name)
			continue
		}
		out.Sources = append(out.Sources, s)
	}
	if in.Sources == nil {
		for i := range r.out.Sources {
			out.Sources = append(out.Sources, i)
		}
	}
	if in.Rate != nil {
		r.between(join(at, "rate"), *in.Rate, 0, 1000)
	}
	for _, l := range []struct {
		name string
		in   *Lengths
		out  **tabletop.Lengths
	}{{"input", in.Input, &out.Input}, {"output", in.Output, &out.Output}} {
		if l.in != nil {
			law := r.lengths(join(at, l.name), l.in)
			*l.out = &law
		}
	}
	if in.Client != nil {
		c := r.client(join(at, "client"), in.Client)
		for i, s := range out.Sources {
			if bound := r.out.Sources[s].Client.Bound; i == 0 || bound == c.Bound {
				c.Bound = bound
			}
		}
		out.Client = &c
	}
	if in.Rate == nil && in.Input == nil && in.Output == nil && in.Client == nil && !r.brokenAt(at) {
		r.fail(at, "add rate, input, output or client", "changes nothing")
	}
	return out
}

// served are the backends that names of backends and pools mean.
func (r *reader) served(at string, names Names) []sluice.BackendID {
	var out []sluice.BackendID
	for i, name := range names {
		ids := r.known[name]
		if ids == nil {
			r.fail(index(at, i), suggest(name, sorted(r.known)), "%q is neither a backend nor a pool of the gateway", name)
			continue
		}
		for _, id := range ids {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	if len(names) == 0 && !r.brokenAt(at) {
		r.fail(at, "name a backend or a pool", "names nothing")
	}
	return out
}

// lost are the last backends of each pool, those that the file's own gateway has.
func (r *reader) lost(at string, in *Loss) []sluice.BackendID {
	pools := r.policies[0].tables[0].Table.Pools
	if in.Pool != "" && pools[sluice.PoolID(in.Pool)] == nil {
		r.fail(join(at, "pool"), suggest(in.Pool, texts(sorted(pools))), "pool %q is not declared in gateway", in.Pool)
		return nil
	}
	if in.Share == 0 && !r.brokenAt(join(at, "share")) {
		r.fail(join(at, "share"), "write a part such as 25%", "0%% loses nothing")
	}
	var out []sluice.BackendID
	for _, id := range sorted(pools) {
		if in.Pool != "" && string(id) != in.Pool {
			continue
		}
		backends := pools[id].Backends
		n := max((len(backends)*int(in.Share)+500)/1000, 1)
		for _, b := range backends[len(backends)-n:] {
			out = append(out, b.ID)
		}
	}
	return out
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

// listed names at most a few.
func listed(ids []sluice.BackendID) string {
	const most = 4
	if len(ids) > most {
		return strings.Join(texts(ids[:most]), ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return strings.Join(texts(ids), ", ")
}
