package wire

import (
	"bytes"
	"slices"
	"strings"
)

// removable is a member that does not stand in the body where the address says the
// same. The zero value is absent.
type removable struct {
	start, end int // from the key's quote to the end of the value
	comma      int // offset of the one before it, negative if it is the first
	next       int // offset of the following key, 0 if it is the last
}

// removable is where such a member is noted, nil for any other.
func (h *Head) removable(key []byte) *removable {
	switch string(key) {
	case "model":
		return &h.modelAt
	case "stream":
		return &h.streamAt
	}
	return nil
}

// elsewhere lists what differs where the address says what the body says else, or
// where there is no model to insert behind: new members then follow the opening brace.
func (h *Head) elsewhere(p []patch, e Edit) []patch {
	var gone []removable
	for _, r := range [...]struct {
		out bool
		at  removable
	}{{e.NoModel, h.modelAt}, {e.NoStream, h.streamAt}} {
		if r.out && r.at.end > 0 {
			gone = append(gone, r.at)
		}
	}
	if !e.NoModel && h.model.ok() && e.Model != "" && e.Model != h.Model {
		p = append(p, patch{h.model, quoted(e.Model)})
	}
	front := span{h.inside, h.inside}
	var added []byte
	for _, q := range h.others(nil, front, e) {
		if q.at == front {
			added = append(added, q.with...)
		} else {
			p = append(p, q)
		}
	}
	if added = bytes.TrimPrefix(added, []byte{','}); len(added) > 0 {
		if len(gone) < h.members {
			added = append(added, ',')
		}
		p = append(p, patch{front, added})
	}
	return without(p, gone)
}

// without takes members out, each with the comma behind it; those that are the last
// with the comma before them.
func without(p []patch, gone []removable) []patch {
	slices.SortFunc(gone, func(a, b removable) int { return a.start - b.start })
	if n := len(gone); n > 0 && gone[n-1].next == 0 {
		first := n - 1
		for first > 0 && gone[first-1].next == gone[first].start {
			first--
		}
		at := span{gone[first].start, gone[n-1].end}
		if c := gone[first].comma; c >= 0 {
			at.start = c
		}
		p, gone = append(p, patch{at: at}), gone[:first]
	}
	for _, r := range gone {
		p = append(p, patch{at: span{r.start, r.next}})
	}
	return p
}

// clouded names in the body what a cloud wants there, but where the client has done
// so.
func (h *Head) clouded(p []patch, insert span, e Edit) []patch {
	if e.Version != "" {
		if h.version.ok() {
			p = append(p, patch{h.version, quoted(e.Version)})
		} else {
			p = append(p, patch{insert, append([]byte(`,"anthropic_version":`), quoted(e.Version)...)})
		}
	}
	if len(e.Betas) > 0 && !h.betas.ok() {
		words := make([]string, len(e.Betas))
		for i, b := range e.Betas {
			words[i] = string(quoted(b))
		}
		p = append(p, patch{insert, []byte(`,"anthropic_beta":[` + strings.Join(words, ",") + `]`)})
	}
	return p
}
