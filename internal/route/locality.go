package route

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Locality is in which regions the requests of a model are served, and when they leave
// the first of them, their home.
type Locality struct {
	// Regions are in the order in which they are tried. An empty one stands for
	// backends that name none, which are nobody's home and keep nothing back.
	Regions []string
	// Overload lets a request leave its home where that cannot serve it in time, too,
	// and not only where it is lost.
	Overload bool
	// Return is how long the traffic takes to come back to a home that was lost; zero
	// takes DefaultReturn.
	Return time.Duration
}

// DefaultReturn is how long the traffic takes to come back to a region that was lost:
// four times the ramp of a breaker, so that each of its backends is back before it is
// asked for all that it can do.
const DefaultReturn = 2 * time.Minute

// MaxReturn bounds Locality.Return.
const MaxReturn = time.Hour

// Away reports whether the region at place i of the order is another's home: what is
// sent there is bounded by what that one has to spare.
func (l *Locality) Away(i int) bool { return i > 0 && l.Regions[i] != "" }

// Returns is Return, or its default.
func (l *Locality) Returns() time.Duration {
	if l.Return <= 0 {
		return DefaultReturn
	}
	return l.Return
}

// Returns is the longest time that a model which the pool serves takes to come back to
// its home, 0 if none has a locality: then its backends are not told apart by region.
func (t *Table) Returns(p *Pool) (long time.Duration) {
	for _, m := range t.Models {
		if m.Locality != nil && (slices.Contains(m.Pools, p.ID) || slices.Contains(m.Fallback, p.ID)) {
			long = max(long, m.Locality.Returns())
		}
	}
	return long
}

// Regions are those of the pool's backends, in the order of the table.
func (p *Pool) Regions() (regions []string) {
	for _, b := range p.Backends {
		if !slices.Contains(regions, b.Region) {
			regions = append(regions, b.Region)
		}
	}
	return regions
}

// locality reports what of it cannot be put into force.
func (t *Table) locality(m *Model) error {
	l := m.Locality
	if l == nil {
		return nil
	}
	if len(l.Regions) == 0 || l.Return < 0 || l.Return > MaxReturn {
		return fmt.Errorf("model %q has a locality without regions, or one that takes longer than %v to return", m.ID, MaxReturn)
	}
	for i, r := range l.Regions {
		if slices.Contains(l.Regions[:i], r) {
			return fmt.Errorf("model %q names the region %q twice", m.ID, r)
		}
	}
	for _, id := range slices.Concat(m.Pools, m.Fallback) {
		if p := t.Pools[id]; p != nil {
			for _, r := range p.Regions() {
				if !slices.Contains(l.Regions, r) {
					return fmt.Errorf("model %q has backends in region %q, and its locality does not name it", m.ID, r)
				}
			}
		}
	}
	return nil
}

// headroom reports shares that are out of range.
func (t *Table) headroom() error {
	var errs []error
	for _, r := range slices.Sorted(maps.Keys(t.Headroom)) {
		if h := t.Headroom[r]; h < 0 || h > 1000 {
			errs = append(errs, fmt.Errorf("region %q has a headroom of %d thousandths", r, h))
		}
	}
	return errors.Join(errs...)
}
