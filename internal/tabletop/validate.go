package tabletop

import (
	"errors"
	"fmt"
	"time"

	"sluice"
)

// mostLength is the longest run.
const mostLength = 366 * 24 * time.Hour

// Validate says what of the scenario cannot be run: all of it, joined.
func (s *Scenario) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Length <= 0 || s.Length > mostLength || s.Warmup < 0 || s.Warmup >= s.Length || s.Drain < 0 || s.Drain > mostLength {
		bad("the run lasts %v after a warm-up of %v, and drains for %v: it must last longer than its warm-up, and at most a year", s.Length, s.Warmup, s.Drain)
	}
	machines := map[sluice.BackendID]bool{}
	for i, m := range s.Machines {
		if (m.Replica == nil) == (m.Hosted == nil) {
			bad("machine %s: give it a replica's profile or a hosted service, one of the two", m.Backend)
		}
		if machines[m.Backend] {
			bad("machine %d: there is another for backend %s", i, m.Backend)
		}
		machines[m.Backend] = true
	}
	if len(s.Policies) == 0 {
		bad("there is no policy to run under")
	}
	for i := range s.Policies {
		errs = append(errs, s.validateVariant(&s.Policies[i], machines)...)
	}
	names := map[string]bool{}
	for i := range s.Sources {
		x := &s.Sources[i]
		if names[x.Name] {
			bad("source %d: there is another of the name %s", i, x.Name)
		}
		names[x.Name] = true
		if x.Class >= sluice.NumClasses {
			bad("source %s: class %v is none", x.Name, x.Class)
		}
	}
	for i := range s.Events {
		errs = append(errs, s.validateEvent(&s.Events[i], machines)...)
	}
	for i := range s.Acts {
		for k := range s.Acts[i].Events {
			errs = append(errs, s.validateEvent(&s.Acts[i].Events[k], machines)...)
		}
	}
	return errors.Join(errs...)
}

func (s *Scenario) validateVariant(v *Variant, machines map[sluice.BackendID]bool) (errs []error) {
	if v.Table == nil {
		return []error{fmt.Errorf("policy %s has no routing table", v.Name)}
	}
	if err := v.Table.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("policy %s: %w", v.Name, err))
	}
	if len(v.Principals) != len(s.Sources) {
		errs = append(errs, fmt.Errorf("policy %s has %d principals for %d sources: give it one for each", v.Name, len(v.Principals), len(s.Sources)))
	}
	for _, p := range sortedPools(v.Table) {
		for _, b := range p.Backends {
			if !machines[b.ID] {
				errs = append(errs, fmt.Errorf("policy %s: backend %s has no machine that plays it", v.Name, b.ID))
			}
		}
	}
	return errs
}

func (s *Scenario) validateEvent(e *Event, machines map[sluice.BackendID]bool) (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("event %q at %v: "+format, append([]any{e.label(), e.At}, args...)...))
	}
	if e.At < 0 {
		bad("it is before the start")
	}
	if t := e.Traffic; t != nil {
		for _, i := range t.Sources {
			if i < 0 || i >= len(s.Sources) {
				bad("source %d is not one of %d", i, len(s.Sources))
			}
		}
		if t.Rate != nil && *t.Rate < 0 {
			bad("a rate of %v is negative", *t.Rate)
		}
	}
	if b := e.Backends; b != nil {
		for _, id := range b.IDs {
			if !machines[id] {
				bad("backend %s has no machine that plays it", id)
			}
		}
	}
	if e.Apply != nil && len(e.Apply) != len(s.Policies) {
		bad("it applies %d variants to %d policies", len(e.Apply), len(s.Policies))
	}
	for i := range e.Apply {
		errs = append(errs, s.validateVariant(&e.Apply[i], machines)...)
	}
	return errs
}
