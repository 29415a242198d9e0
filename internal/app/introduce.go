package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/store"
)

// introduceWithin bounds how long limits that are new wait for the ledger. What comes into
// force with them waits too, such as that a key is revoked, which has 5 s.
const introduceWithin = 3 * time.Second

// toldIntroduced bounds how many limits a line of the log names.
const toldIntroduced = 10

// introduceOf is introduce for records that are about to be in force.
func (a *App) introduceOf(before, next *auth.Snapshot) { a.introduce(next.Introduced(before)) }

// introduce gives limits of fixed windows that are about to come into force what their
// windows have taken, as a start does: else a budget would count from zero, and be
// overspent all at once after the next start. It ends soon, and where the ledger
// cannot be asked they count from now on. Before the store is there nothing is
// admitted, and the windows are seeded when it comes.
func (a *App) introduce(limits []auth.Introduced) {
	db := a.store.db.Load()
	if len(limits) == 0 || db == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), introduceWithin)
	defer cancel()
	told := slog.Any("limits", told(limits))
	seeds, err := a.introduced(ctx, db, limits)
	if err != nil {
		a.log.Warn("limits that are new count from now on, what was used before in their windows not: the ledger could not be asked for it", told, slog.Any("error", err))
		return
	}
	made := a.gate.Introduce(seeds)
	a.log.Info("limits that are new begin with what was used in their windows", told, slog.Int("counters", made))
}

func told(limits []auth.Introduced) []string {
	var out []string
	for _, l := range limits[:min(len(limits), toldIntroduced)] {
		out = append(out, l.String())
	}
	if more := len(limits) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// introduced is what the ledger has of limits, one figure for each counter. The journal
// brings nothing into the store meanwhile: what it did between two looks would be in neither.
func (a *App) introduced(ctx context.Context, db *store.DB, limits []auth.Introduced) ([]engine.Spent, error) {
	wanted := make(map[auth.Introduced]bool, len(limits))
	var scopes [sluice.NumScopes]bool
	var windows []sluice.Window
	for _, l := range limits {
		wanted[l], scopes[l.Scope] = true, true
		if !slices.Contains(windows, l.Window) {
			windows = append(windows, l.Window)
		}
	}
	resume, err := a.store.still(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for the drain: %w", err)
	}
	defer resume()
	now := time.Now()
	sums := introducedSums{wanted: wanted, at: make(map[engine.Spent]int)}
	others := scopes
	others[sluice.ScopeUser], others[sluice.ScopeShadow] = false, false
	if slices.Contains(others[:], true) {
		spent, err := db.Spend(ctx, now, a.journal.Undrained, windows...)
		if err != nil {
			return nil, err
		}
		sums.add(spent)
	}
	if scopes[sluice.ScopeUser] {
		spent, err := db.LabelledSpend(ctx, now, store.Labelled{Users: true, Windows: windows}, a.journal.Undrained)
		if err != nil {
			return nil, err
		}
		sums.add(spent)
	}
	if scopes[sluice.ScopeShadow] {
		spent, err := db.ShadowSpend(ctx, now, a.journal.Undrained, windows...)
		if err != nil {
			return nil, err
		}
		sums.add(spent)
	}
	return sums.seeds, nil
}

// introducedSums are seeds of what is wanted, each counter's once.
type introducedSums struct {
	wanted map[auth.Introduced]bool
	seeds  []engine.Spent
	at     map[engine.Spent]int // where in seeds it is, by itself without its amount
	buf    []engine.Spent
}

func (m *introducedSums) add(spent []ledger.Spend) {
	for i := range spent {
		m.buf = appendSeeds(m.buf[:0], &spent[i], nil)
		for _, s := range m.buf {
			if !m.wanted[limitOf(&s)] {
				continue
			}
			amount := s.Amount
			s.Amount = 0
			if s.Scope == sluice.ScopeKey { // a key that moved has a sum in each of its projects
				s.Project = ""
			}
			at, known := m.at[s]
			if !known {
				at = len(m.seeds)
				m.at[s] = at
				m.seeds = append(m.seeds, s)
			}
			m.seeds[at].Amount += amount
		}
	}
}

// limitOf is the limit that a seed is for.
func limitOf(s *engine.Spent) auth.Introduced {
	l := auth.Introduced{Scope: s.Scope, Tenant: s.Tenant, Dimension: s.Dimension, Window: s.Window}
	if s.Scope == sluice.ScopeModel || s.Scope == sluice.ScopeShadow {
		l.Model = s.Model
	}
	return l
}

// limitsOf are the limits of fixed windows of a table that another does not have: of
// models, their shadows, and the fleet.
func limitsOf(before, next *route.Table) (out []auth.Introduced) {
	add := func(at auth.Introduced, was, is []sluice.Limit) {
		for _, l := range is {
			if l.Window.Fixed() && l.Amount > 0 && !slices.ContainsFunc(was, func(o sluice.Limit) bool {
				return o.Dimension == l.Dimension && o.Window == l.Window && o.Amount > 0
			}) {
				at.Dimension, at.Window = l.Dimension, l.Window
				out = append(out, at)
			}
		}
	}
	add(auth.Introduced{Scope: sluice.ScopeFleet}, before.Fleet, next.Fleet)
	for id, m := range next.Models {
		was := before.Models[id]
		if was == nil {
			was = &route.Model{}
		}
		add(auth.Introduced{Scope: sluice.ScopeModel, Model: id}, was.Limits, m.Limits)
		for i := range m.Shadows {
			s := &m.Shadows[i]
			var limits []sluice.Limit
			if j := slices.IndexFunc(was.Shadows, func(o route.Shadow) bool { return o.Pool == s.Pool }); j >= 0 {
				limits = was.Shadows[j].Limits
			}
			add(auth.Introduced{Scope: sluice.ScopeShadow, Model: id}, limits, s.Limits)
		}
	}
	return out
}
