package estimate

import "sluice"

// Key says whose requests are alike: a tenant's, to one upstream model, for one
// task. Task may be empty.
type Key struct {
	Tenant sluice.TenantID
	Model  string // the upstream's name of the model
	Task   string
}

// scope is Key without the task.
type scope struct {
	tenant sluice.TenantID
	model  string
}

func (k Key) scope() scope { return scope{k.Tenant, k.Model} }

// Options bound a Model. The zero value takes the defaults.
type Options struct {
	// Keys bounds how many entries each of its tables keeps: tenant × model ×
	// task, tenant × model, backend × model, and model. The least recently used
	// goes first. 0 means DefaultKeys.
	Keys int
	// ColdOutput is the output that a request of a model without any history
	// holds, if its bound allows as much. 0 means DefaultColdOutput.
	ColdOutput sluice.Tokens
}

// Defaults of Options.
const (
	DefaultKeys       = 16384
	DefaultColdOutput = sluice.Tokens(512)
)

// Model is what has been learned about token counts and about the time that
// tokens take. It is plain state: no
// clock, no lock. Who shares it guards it, reads included, since a read marks
// its key as used.
type Model struct {
	cold sluice.Tokens

	input   ratios
	counted ratios
	tasks   *table[Key, histogram]
	tenants *table[scope, histogram]
	models  *table[string, histogram]

	paces      *table[Place, pace]
	modelPaces *table[string, pace]
}

// New makes an empty model.
func New(o Options) *Model {
	if o.Keys <= 0 {
		o.Keys = DefaultKeys
	}
	if o.ColdOutput <= 0 {
		o.ColdOutput = DefaultColdOutput
	}
	return &Model{
		cold:    o.ColdOutput,
		input:   newRatios(o.Keys),
		counted: newRatios(o.Keys),
		tasks:   newTable[Key, histogram](o.Keys),
		tenants: newTable[scope, histogram](o.Keys),
		models:  newTable[string, histogram](o.Keys),

		paces:      newTable[Place, pace](o.Keys),
		modelPaces: newTable[string, pace](o.Keys),
	}
}

// Input is the input that the provider is expected to report, given the
// counter's figure.
func (m *Model) Input(k Key, raw sluice.Tokens) sluice.Tokens {
	mean, _ := m.input.at(k.scope())
	return scale(raw, mean)
}

// InputUpper is Input with a margin of two standard deviations of what has been
// seen: what a limit holds that would rather refuse than be wrong.
func (m *Model) InputUpper(k Key, raw sluice.Tokens) sluice.Tokens {
	mean, dev := m.input.at(k.scope())
	return scale(raw, mean+2*dev)
}

// ObserveInput learns from a request whose input the provider has reported.
// Figures that are not positive teach nothing.
func (m *Model) ObserveInput(k Key, raw, reported sluice.Tokens) {
	m.input.observe(k.scope(), raw, reported)
}

// Counted is the output that the provider is expected to report, given the
// counter's figure of the text that has arrived.
func (m *Model) Counted(k Key, counted sluice.Tokens) sluice.Tokens {
	mean, _ := m.counted.at(k.scope())
	return scale(counted, mean)
}

// CountedUpper is the most that the provider is expected to report for the text
// that has arrived: two standard deviations above Counted once enough has been seen
// of the model, and before that a token for each of its bytes.
func (m *Model) CountedUpper(k Key, counted sluice.Tokens, bytes int64) sluice.Tokens {
	if !m.counted.warm(k.scope()) {
		return sluice.Tokens(bytes)
	}
	mean, dev := m.counted.at(k.scope())
	return min(scale(counted, mean+2*dev), sluice.Tokens(bytes))
}

// ObserveCounted learns from a stream that has completed: what the counter made
// of its text, and what the provider reported for the same text. Hidden
// reasoning is in neither.
func (m *Model) ObserveCounted(k Key, counted, reported sluice.Tokens) {
	m.counted.observe(k.scope(), counted, reported)
}

// Output is the output that a request is expected to produce, its mean, and
// what it holds, its 95th percentile. Neither is above bound; a bound that is
// not positive allows no output. expected ≤ hold.
func (m *Model) Output(k Key, bound sluice.Tokens) (expected, hold sluice.Tokens) {
	if bound <= 0 {
		return 0, 0
	}
	h := m.outputs(k)
	if h == nil {
		expected, hold = m.cold/2, m.cold
	} else {
		expected, hold = h.mean(), h.quantile(95)
	}
	hold = min(max(hold, expected), bound)
	return min(expected, hold), hold
}

// Remaining is the output that a request is expected to have produced in the end
// if it has come to least and goes on: the mean of those answers that had as
// much. It is from least to bound, bound alone where that is less.
func (m *Model) Remaining(k Key, least, bound sluice.Tokens) sluice.Tokens {
	if bound <= 0 {
		return 0
	}
	n := m.cold / 2
	if h := m.outputs(k); h != nil {
		n = h.meanFrom(least)
	}
	return min(max(n, least), bound)
}

// outputs is the most specific history with enough in it to have a 95th
// percentile, nil if there is none.
func (m *Model) outputs(k Key) *histogram {
	if k.Task != "" {
		if h := m.tasks.get(k); h != nil && h.seen >= warmOutputs {
			return h
		}
	}
	if h := m.tenants.get(k.scope()); h != nil && h.seen >= warmOutputs {
		return h
	}
	if h := m.models.get(k.Model); h != nil && h.seen >= warmOutputs {
		return h
	}
	return nil
}

// ObserveOutput learns from a request that has completed: all of its billed
// output, hidden reasoning too. A figure that is not positive teaches nothing.
func (m *Model) ObserveOutput(k Key, reported sluice.Tokens) {
	if reported <= 0 {
		return
	}
	if k.Task != "" {
		m.tasks.put(k).add(reported)
	}
	m.tenants.put(k.scope()).add(reported)
	m.models.put(k.Model).add(reported)
}

// ObserveCut learns from a request that nobody saw the end of, when its output had
// come to least, of a backend that goes on regardless: what it had in the end is
// taken to be one of those that had as much. Without it only answers that are short
// enough to be waited for would teach how long answers are. Nothing is learned
// while nothing is known of those, nor of least alone if that is not positive.
func (m *Model) ObserveCut(k Key, least, bound sluice.Tokens) {
	h := m.outputs(k)
	if h == nil || least <= 0 {
		return
	}
	m.ObserveOutput(k, min(h.drawFrom(least), bound))
}
