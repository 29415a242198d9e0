package admin

import (
	"slices"

	"sluice"
)

// hooksOf is the hooks that a record names, as the API shows them; nil where it names
// none.
func hooksOf(names []string) *[]string {
	if len(names) == 0 {
		return nil
	}
	out := slices.Clone(names)
	return &out
}

// applyHooks sets a record's hooks where the fields name any, an empty list too. One that
// is not configured is refused, unlike a model: every request would be.
func (a *API) applyHooks(to, named *[]string) error {
	if named == nil {
		return nil
	}
	var out []string
	for _, name := range *named {
		switch {
		case a.o.HasHook != nil && !a.o.HasHook(name):
			e := sluice.Invalid("hooks", "has %q, which is not configured", name)
			e.Hint = "declare it under hooks of the configuration file, and reload, first: until then it would refuse every request"
			return e
		case !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	*to = out
	return nil
}
