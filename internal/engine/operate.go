package engine

import (
	"fmt"
	"time"

	"sluice"
	"sluice/internal/ladder"
)

// Order is what an operator has the engine do with a backend or a credential.
type Order struct {
	Backend sluice.BackendID
	Drain   bool // it takes no new attempts until Undrain, whatever table comes into force; what runs there ends there
	Undrain bool

	// Pool is whose ladder is put on Pin's tier, or, with Unpin, is left to its signals.
	Pool  sluice.PoolID
	Pin   *ladder.Pin
	Unpin bool

	// Enable makes the credential of that name usable at once, which was refused or whose
	// allowance was spent; with Backend, where it was refused at that one alone. The pause
	// that a provider asked for stays.
	Enable string
}

// Operate carries out an order. It reports whether that changed anything, and refuses
// what names a backend or a credential that there is not. Call Advance next.
func (e *Engine) Operate(now time.Time, o Order) (changed bool, err error) {
	now = e.tick(now)
	if o.Pin != nil || o.Unpin {
		return e.pinned(now, &o)
	}
	pl := e.places[o.Backend]
	if o.Backend != "" && (pl == nil || pl.Retired) {
		return false, unknown("backend", string(o.Backend), "GET /admin/v1/backends lists them")
	}
	if o.Drain || o.Undrain {
		if pl == nil {
			return false, sluice.Invalid("backend", "is missing")
		}
		changed = pl.Drain(o.Drain)
	}
	if o.Enable != "" {
		enabled, err := e.enable(now, o)
		if err != nil {
			return changed, err
		}
		changed = changed || enabled
	}
	if changed {
		e.healthChanged(now)
	}
	return changed, nil
}

// enable makes a credential usable where the order says.
func (e *Engine) enable(now time.Time, o Order) (changed bool, err error) {
	found := false
	for _, p := range e.pools {
		for _, pl := range p.places {
			if o.Backend != "" && pl.Backend.ID != o.Backend {
				continue
			}
			was, has := pl.Enable(now, o.Enable, o.Backend == "")
			found, changed = found || has, changed || was
		}
	}
	if !found {
		return false, unknown("credential", o.Enable, "GET /admin/v1/credentials lists them")
	}
	return changed, nil
}

func unknown(what, id, hint string) error {
	return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no %s %q", what, id), Hint: hint}
}
