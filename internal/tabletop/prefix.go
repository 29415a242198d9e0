package tabletop

import (
	"sluice"
	"sluice/internal/route"
)

// prefixKey is one prompt that requests of a source have in common, in blocks of a
// size.
type prefixKey struct {
	source int
	group  int64
	size   sluice.Tokens
}

// mostPrefixes bounds how many prompts' blocks are kept; further ones are made
// anew each time.
const mostPrefixes = 4096

// blocks is the hashes of the blocks of a request's prompt that others have too, as
// a machine with a prefix cache reads them.
func (p *play) blocks(q *request, m *machine) []uint64 {
	if m.spec.Replica == nil || m.spec.Replica.BlockTokens <= 0 {
		return nil
	}
	return p.shared(q, m.spec.Replica.BlockTokens)
}

// prefix is the same as a gateway reads it off the body; empty where no machine has a
// prefix cache, and so nobody would ask.
func (p *play) prefix(q *request) route.Prefix {
	for _, m := range p.machines {
		if m.spec.Replica != nil && m.spec.Replica.BlockTokens > 0 {
			n := m.spec.Replica.BlockTokens
			return route.Prefix{Blocks: p.shared(q, n), Tokens: n}
		}
	}
	return route.Prefix{}
}

func (p *play) shared(q *request, size sluice.Tokens) []uint64 {
	if q.truth.blocks != nil {
		return q.truth.blocks
	}
	x := p.sources[q.source]
	if x.Prefix.Tokens <= 0 {
		return nil
	}
	k := prefixKey{source: q.source, group: q.truth.group, size: size}
	if b, ok := p.prefixes[k]; ok {
		return b
	}
	b := make([]uint64, x.Prefix.Tokens/k.size)
	h := mix(x.name ^ mix(uint64(k.group)))
	for i := range b {
		h = mix(h)
		b[i] = h
	}
	if len(p.prefixes) < mostPrefixes {
		p.prefixes[k] = b
	}
	return b
}
