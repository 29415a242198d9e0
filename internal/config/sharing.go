package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Policy is how pools are shared.
type Policy string

// The policies.
const (
	Fair  Policy = "fair"
	Naive Policy = "naive"
)

func (Policy) words() []string { return []string{string(Fair), string(Naive)} }

// ClassShare is a class's part of a pool. What is left out has a default: see
// [Pool.sharing].
type ClassShare struct {
	Share    *Percent `json:"share,omitempty" jsonschema:"its part of the service, by work, while others want the rest; what it does not use is lent. What the classes that name one leave is split between those that do not as 60 : 30 : 10. With 0% it ages as if it had 1%"`
	Headroom *Percent `json:"headroom,omitempty" jsonschema:"part of the pool that no other class may occupy, however little this one uses; 10% for interactive, else none, if left out"`
	Ceiling  *Percent `json:"ceiling,omitempty" jsonschema:"most of the pool that it may occupy; all if left out"`
}

// Contract is capacity of a pool reserved for a tenant.
type Contract struct {
	Tenant        string   `json:"tenant" jsonschema:"whose it is"`
	Concurrency   Count    `json:"concurrency,omitempty" jsonschema:"requests at a time; reserves and bounds none if left out"`
	KVTokens      Count    `json:"kv_tokens,omitempty" jsonschema:"KV memory in tokens; reserves and bounds none if left out"`
	WorkPerSecond Count    `json:"work_per_second,omitempty" jsonschema:"work per second inside of the contract, by the pool's weights; more is overflow, which competes as any other request. No bound if left out"`
	Lend          Lend     `json:"lend,omitempty" jsonschema:"to whom it is lent while idle: none, short (requests that are predicted to end within reclaim) or all, which is back when they end, however long that takes"`
	Reclaim       Duration `json:"reclaim,omitempty" jsonschema:"within what time a reserve that was lent to short requests is back, from 100ms to 1m"`
}

// Bounds of Contract.Reclaim.
const (
	minReclaim = 100 * time.Millisecond
	maxReclaim = time.Minute
)

func (k *Contract) setDefaults() {
	k.Lend, k.Reclaim = "short", Duration(sched.DefaultReclaim)
}

// Lend is to whom idle reserved capacity is lent.
type Lend string

// lends are the words of Lend, by what they mean.
var lends = map[sched.Lend]string{sched.LendNone: "none", sched.LendShort: "short", sched.LendAll: "all"}

func (Lend) words() []string {
	return []string{lends[sched.LendNone], lends[sched.LendShort], lends[sched.LendAll]}
}

func (l Lend) compiled() sched.Lend {
	for v, word := range lends {
		if word == string(l) {
			return v
		}
	}
	return sched.LendShort
}

// Work is what a token counts for in the work that classes, tenants and projects
// share a pool by.
type Work struct {
	Input  int64 `json:"input" zero:"meant" jsonschema:"an uncached input token, from 0 to 100; a cached one counts nothing"`
	Output int64 `json:"output" zero:"meant" jsonschema:"an output token, from 0 to 100: it occupies a backend for longer"`
}

// maxTokenWork bounds the weights of Work, so that virtual time does not end
// within the life of a process.
const maxTokenWork = 100

func (p *Pool) setDefaults() {
	c := route.Cost{}.WithDefaults()
	p.Work = Work{Input: c.Input, Output: c.Output}
	p.Scale.setDefaults()
}

// classes are the pool's classes with what the file leaves out. Shares that it
// names stay as they are; what they leave of the whole is split between the others
// in the proportion of the defaults, and by rounding a thousandth may be nobody's.
func (p *Pool) classes() [sluice.NumClasses]sched.Class {
	defaults := sched.DefaultClasses()
	var out [sluice.NumClasses]sched.Class
	left, base := int64(1000), int64(0)
	for i := range out {
		if share := p.Classes[classWords[i]].Share; share != nil {
			left -= share.thousandths()
		} else {
			base += defaults[i].Share
		}
	}
	for i := range out {
		said := p.Classes[classWords[i]]
		out[i] = sched.Class{Headroom: defaults[i].Headroom}
		if said.Share != nil {
			out[i].Share = said.Share.thousandths()
		} else {
			out[i].Share = max(left, 0) * defaults[i].Share / base
		}
		if said.Headroom != nil {
			out[i].Headroom = said.Headroom.thousandths()
		}
		if said.Ceiling != nil {
			out[i].Ceiling = said.Ceiling.thousandths()
		}
		if out[i] == (sched.Class{}) {
			out[i].Ceiling = 1000 // the zero value would take the defaults
		}
	}
	return out
}

func (p Percent) thousandths() int64 { return 10 * int64(p) }

// sharing is how the pool's queue shares it out.
func (p *Pool) sharing(policy Policy) sched.Policy {
	if policy == Naive {
		return sched.Policy{FIFO: true}
	}
	out := sched.Policy{Classes: p.classes()}
	for _, k := range p.Contracts {
		out.Contracts = append(out.Contracts, sched.Contract{
			Tenant: sluice.TenantID(k.Tenant), Slots: int64(k.Concurrency), KV: sluice.Tokens(k.KVTokens), WorkPerSecond: int64(k.WorkPerSecond),
			Lend: k.Lend.compiled(), Reclaim: time.Duration(k.Reclaim),
		})
	}
	return out
}

// holds is what the pool's backends hold at a time, those aside that take no new
// requests. It is 0 where it is not bounded.
func (p *Pool) holds() (slots, kv int64) {
	bounded := true
	for _, b := range p.Backends {
		if b.Weight <= 0 {
			continue
		}
		n := int64(b.Capacity.Concurrency)
		if n == 0 {
			n = route.DefaultConcurrency
		}
		slots += n
		kv += int64(b.Capacity.KVTokens)
		bounded = bounded && b.Capacity.KVTokens > 0
	}
	if !bounded {
		kv = 0
	}
	return slots, kv
}

// sharing checks how a pool is to be shared out.
func (v *validator) sharing(path string, p *Pool) {
	v.classes(join(path, "classes"), p)
	v.contracts(join(path, "contracts"), p)
	at := join(path, "work")
	v.tokenWork(join(at, "input"), p.Work.Input)
	v.tokenWork(join(at, "output"), p.Work.Output)
	if p.Work.Input == 0 && p.Work.Output == 0 {
		v.fail(at, "give one of them a weight of 1 or more, or leave work out for {input: 1, output: 2}", "no token counts: there would be nothing to share by")
	}
	if at := join(join(path, "queue"), "per_tenant"); v.given(at) && p.Queue.PerTenant == 0 {
		v.fail(at, "write a part from 1% to 100%", "0%% would let no request wait")
	}
	for name, zero := range map[string]bool{
		"requests": p.Queue.Requests == 0, "bytes": p.Queue.Bytes == 0, "work": p.Queue.Work == 0, "max_wait": p.Queue.MaxWait == 0,
	} {
		if at := join(join(path, "queue"), name); zero && v.given(at) {
			v.fail(at, zeroFix, "0 would be as if it were left out")
		}
	}
}

// zeroFix mends bounds of a queue that say 0.
const zeroFix = "write more, or leave it out for the default; a request that is not to wait says sluice-max-wait: 0"

func (v *validator) tokenWork(path string, weight int64) {
	if weight < 0 || weight > maxTokenWork {
		v.fail(path, fmt.Sprintf("write a whole number from 0 to %d", maxTokenWork), "%d is not a weight", weight)
	}
}

func (v *validator) given(path string) bool {
	_, ok := v.pos[path]
	return ok
}

// brokenBelow reports whether something inside of a section has been reported.
func (v *validator) brokenBelow(path string) bool {
	for at := range v.broken {
		if strings.HasPrefix(at, path+".") {
			return true
		}
	}
	return false
}

func (v *validator) classes(path string, p *Pool) {
	named, headroom := Percent(0), int64(0)
	for _, class := range sorted(p.Classes) {
		if !slices.Contains(classWords, class) {
			v.fail(join(path, class), suggest(class, classWords), "%q is not a class", class)
			continue
		}
		if share := p.Classes[class].Share; share != nil {
			named += *share
		}
	}
	if named > 100 {
		v.fail(path, "lower them to a sum of at most 100%", "the shares add up to %d%%", named)
		return
	}
	for i, c := range p.classes() {
		v.class(join(path, classWords[i]), p.Classes[classWords[i]], c)
		headroom += c.Headroom
	}
	if headroom >= 1000 {
		v.fail(path, "lower the headroom to less than 100% in all, that of interactive included", "the headroom adds up to %s: none of the pool is left to share", percent(headroom))
	}
}

// class checks one class; c is it with what the file leaves out.
func (v *validator) class(path string, said ClassShare, c sched.Class) {
	if said.Ceiling == nil {
		return
	}
	at := join(path, "ceiling")
	switch {
	case c.Ceiling == 0:
		v.fail(at, "write at least 1%, or leave it out for the whole pool", "0%% would admit nothing")
	case c.Ceiling < c.Share && said.Share == nil:
		v.fail(at, fmt.Sprintf("raise it, or add share: %d%%", *said.Ceiling), "%d%% is less than the share of the class, %s as it names none", *said.Ceiling, percent(c.Share))
	case c.Ceiling < c.Share:
		v.fail(at, "raise it, or lower the share", "%d%% is less than the share of the class, %s", *said.Ceiling, percent(c.Share))
	case c.Ceiling < c.Headroom:
		v.fail(at, "raise it, or lower the headroom", "%d%% is less than the headroom of the class, %s", *said.Ceiling, percent(c.Headroom))
	}
}

// percent writes thousandths.
func percent(thousandths int64) string {
	if thousandths%10 == 0 {
		return fmt.Sprintf("%d%%", thousandths/10)
	}
	return fmt.Sprintf("%d.%d%%", thousandths/10, thousandths%10)
}

// contracts checks each contract, and that all of them leave something.
func (v *validator) contracts(path string, p *Pool) {
	slots, kv := p.holds()
	var reserved struct{ slots, kv int64 }
	holder, fits := make(map[string]string), true
	for i, k := range p.Contracts {
		at := index(path, i)
		if k.Tenant != "" {
			v.name(join(at, "tenant"), "tenant", k.Tenant)
			if first := holder[k.Tenant]; first != "" {
				v.fail(join(at, "tenant"), "add it to that one", "tenant %q has a contract already: %s", k.Tenant, first)
			}
			holder[k.Tenant] = at
		}
		if k.Concurrency == 0 && k.KVTokens == 0 && k.WorkPerSecond == 0 && !v.brokenBelow(at) {
			v.fail(at, "give it concurrency, kv_tokens or work_per_second", "the contract reserves nothing")
		}
		if r := time.Duration(k.Reclaim); r < minReclaim || r > maxReclaim {
			v.fail(join(at, "reclaim"), "write a time from 100ms to 1m", "%s is too short or too long", k.Reclaim)
		}
		if n := int64(k.Concurrency); slots > 0 && n > slots {
			fits = false
			v.fail(join(at, "concurrency"), "lower it, or add backends or their concurrency", "%d requests at a time are more than the %d that the pool's backends hold", n, slots)
		}
		if n := int64(k.KVTokens); kv > 0 && n > kv {
			fits = false
			v.fail(join(at, "kv_tokens"), "lower it, or add backends", "%d tokens are more than the %d that the pool's backends hold", n, kv)
		}
		reserved.slots += min(int64(k.Concurrency), slots)
		reserved.kv += min(int64(k.KVTokens), kv)
	}
	if !fits || len(p.Contracts) == 0 {
		return
	}
	const fix = "lower the contracts or the headroom, or add backends"
	for _, d := range []struct {
		what            string
		reserved, holds int64
	}{{"requests at a time", reserved.slots, slots}, {"KV tokens", reserved.kv, kv}} {
		headroom := p.headroom(d.holds)
		if d.reserved > 0 && d.reserved+headroom >= d.holds {
			v.fail(path, fix, "contracts reserve %d and headroom %d of the %d %s that the pool's backends hold: nothing is left to share", d.reserved, headroom, d.holds, d.what)
		}
	}
}

// inForce are the limits of a place above which none stand that the policy obeys.
func (c *Config) inForce(l Limits) []sluice.Limit {
	out := l.top()
	if c.Policy == Naive {
		out = slices.DeleteFunc(out, func(l sluice.Limit) bool { return !naively(l) })
	}
	return out
}

// limits are all limits that stand in the file.
func (c *Config) limits() (out []Limits) {
	out = append(out, c.Limits)
	for _, m := range c.Models {
		out = append(out, m.Limits)
	}
	for _, p := range c.Plans {
		out = append(out, p.Limits, p.PerProject, p.PerKey, p.PerUser, Limits(p.PerRun))
		for _, l := range p.PerModel {
			out = append(out, l)
		}
	}
	for _, t := range c.Tenants {
		out = append(out, t.Limits)
		for _, p := range t.Projects {
			out = append(out, p.Limits)
		}
		for _, k := range t.Keys {
			out = append(out, k.Limits, Limits(k.PerRun))
		}
	}
	return out
}
