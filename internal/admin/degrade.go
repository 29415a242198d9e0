package admin

import (
	"fmt"

	"sluice"
)

// noSmaller is how a record says that no smaller model may serve.
const noSmaller = "off"

// degradeOf is a tenant's consent to a smaller model as the API shows it; nil where it
// says nothing, so that the plan's counts.
func degradeOf(m *sluice.ModelID) *string {
	if m == nil {
		return nil
	}
	s := string(*m)
	if s == "" {
		s = noSmaller
	}
	return &s
}

// planDegradeOf is a plan's, above which none stands; nil where it has none.
func planDegradeOf(m sluice.ModelID) *string {
	if m == "" {
		return nil
	}
	return degradeOf(&m)
}

// applyDegrade sets a tenant's where the fields name one; empty says nothing.
func applyDegrade(to **sluice.ModelID, f *string) {
	if f == nil {
		return
	}
	*to = nil
	if *f != "" {
		m := consent(*f)
		*to = &m
	}
}

// applyPlanDegrade sets a plan's where the fields name one.
func applyPlanDegrade(to *sluice.ModelID, f *string) {
	if f != nil {
		*to = consent(*f)
	}
}

func consent(f string) sluice.ModelID {
	if f == noSmaller {
		return ""
	}
	return sluice.ModelID(f)
}

// idleConsent warns of a consent to a model that is not configured now, or that the
// record's own models do not allow: it would never serve.
func (a *API) idleConsent(f *string, models []sluice.ModelID) Warned {
	if f == nil || consent(*f) == "" {
		return Warned{}
	}
	out := a.unknownModels(&[]string{*f})
	if p := (sluice.Policy{Models: models}); !p.Allows(consent(*f)) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("degrade names %q, which models does not allow: it never serves", *f))
	}
	return out
}

// and joins warnings.
func (w Warned) and(others ...Warned) Warned {
	for _, o := range others {
		w.Warnings = append(w.Warnings, o.Warnings...)
	}
	return w
}
