package control

import (
	"fmt"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/route"
)

// shape is what the backends of a model can be asked for, whichever serves.
type shape struct {
	first  *route.Backend // that the model's requests most likely go to; nil if none speaks the dialect
	output sluice.Tokens  // bound of one answer
	named  sluice.Tokens  // the largest bound that a backend names; 0 if none does
}

type shapeKey struct {
	model   sluice.ModelID
	dialect string
}

func (g *Gateway) shape(k shapeKey) shape {
	if s, ok := g.shapes[k]; ok {
		return s
	}
	var s shape
	if m := g.table.Models[k.model]; m != nil {
		m.Visit("", func(id sluice.PoolID, _ bool) bool {
			p := g.table.Pools[id]
			if p == nil {
				return false
			}
			for _, b := range p.Backends {
				if b.Dialect != k.dialect {
					continue
				}
				if s.first == nil {
					s.first = b
				}
				s.output, s.named = max(s.output, mostOutput(b)), max(s.named, b.MaxOutput)
			}
			return false
		})
	}
	if s.output == 0 { // the engine refuses it
		s.output = believedMaxOutput
	}
	g.shapes[k] = s
	return s
}

func mostOutput(b *route.Backend) sluice.Tokens {
	n := believedMaxOutput
	if b.Context > 0 {
		n = min(n, b.Context)
	}
	if b.MaxOutput > 0 {
		n = min(n, b.MaxOutput)
	}
	return n
}

// plan estimates a request and is what the engine is asked. The error refuses what
// the policy lets no request have.
func (g *Gateway) plan(c *Call) (engine.Call, *sluice.Error) {
	s, p := g.shape(shapeKey{c.Model, c.Dialect}), c.Principal.Policy
	per := c.Bound
	switch {
	case per > 0:
	case p != nil && p.MaxOutput > 0:
		per = p.MaxOutput
	case s.named > 0:
		per = s.named
	default:
		per = unknownMaxOutput
	}
	per = min(per, s.output)
	enforced := p != nil && p.Mode == sluice.Enforce
	if enforced && p.OutputCeiling > 0 {
		per = min(per, p.OutputCeiling)
	}
	per = max(per, 1)
	w := sluice.Work{InputBound: max(sluice.Tokens(c.Bytes), c.Counted), OutputBound: per}
	k := g.key(c, s.first)
	w.Input = min(g.learned.Input(k, c.Counted), w.InputBound)
	w.Output, w.OutputHold = g.learned.Output(k, per)
	c.Work = w
	call := engine.Call{
		ID: c.ID, Principal: c.Principal, Model: c.Model, Dialect: c.Dialect, Class: c.Class, Task: c.Task,
		Work: w, Least: min(per, engine.MinOutput), Bytes: c.Bytes, MaxWait: c.MaxWait, Streaming: true, Choices: 1,
		Counted: hard(p), Prefix: c.Prefix,
	}
	if enforced && p.InputCeiling > 0 && w.Input > p.InputCeiling {
		return call, &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.NeverFits,
			Msg: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", w.Input, p.InputCeiling),
		}
	}
	return call, nil
}

func hard(p *sluice.Policy) bool { return p != nil && p.HardSpend }

// key is what the estimate is learned by.
func (g *Gateway) key(c *Call, b *route.Backend) estimate.Key {
	k := estimate.Key{Tenant: c.Principal.Tenant, Model: string(c.Model), Task: c.Task}
	if b != nil {
		k.Model = b.Model
	}
	return k
}
