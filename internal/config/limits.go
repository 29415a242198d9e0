package config

import (
	"encoding/json"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/quota"
)

// Limits bounds dimensions over windows, written as one mapping:
// {requests_per_minute: 600, input_tokens_per_minute: 1M, concurrency: 32}.
// What is left out is not limited, unless by what it replaces; none lifts that.
type Limits []sluice.Limit

// unlimited is how an amount says that there is no limit.
const unlimited = "none"

// top is the limits of a place above which none stand: none says nothing there.
func (l Limits) top() []sluice.Limit {
	return slices.DeleteFunc(slices.Clone(l), func(l sluice.Limit) bool { return l.Amount == auth.Unlimited })
}

// limitField is one key of such a mapping.
type limitField struct {
	name string
	of   sluice.Limit // without its amount
	doc  string
}

var limitFields = makeLimitFields()

func makeLimitFields() []limitField {
	var out []limitField
	add := func(d sluice.Dimension, what string, windows ...sluice.Window) {
		for _, w := range windows {
			out = append(out, limitField{d.String() + "_per_" + w.String(), sluice.Limit{Dimension: d, Window: w}, what + " per " + w.String()})
		}
	}
	rates := []sluice.Window{sluice.PerSecond, sluice.PerMinute, sluice.PerHour, sluice.PerDay}
	add(sluice.Requests, "requests", rates...)
	add(sluice.InputTokens, "input tokens", rates...)
	add(sluice.OutputTokens, "output tokens", rates...)
	out = append(out,
		limitField{"concurrency", sluice.Limit{Dimension: sluice.Concurrency}, "requests at a backend at a time"},
		limitField{"kv_tokens", sluice.Limit{Dimension: sluice.KVTokens}, "input plus held output tokens of all requests at a backend"})
	add(sluice.Spend, "dollars", sluice.PerHour, sluice.PerDay, sluice.PerMonth)
	return out
}

func limitNames() []string {
	out := make([]string, len(limitFields))
	for i, f := range limitFields {
		out[i] = f.name
	}
	return out
}

// decodeNode reads the mapping.
func (l *Limits) decodeNode(d *decoder, n node, path string) {
	for _, e := range d.entries(n, path) {
		at := join(path, e.key)
		i := slices.IndexFunc(limitFields, func(f limitField) bool { return f.name == e.key })
		if i < 0 {
			d.report(e.keyPos, at, suggest(e.key, limitNames()), "unknown limit")
			continue
		}
		d.mark(at, e)
		text, ok := d.scalar(e.value, at)
		if !ok {
			continue
		}
		limit := limitFields[i].of
		if text == unlimited {
			limit.Amount = auth.Unlimited
			*l = append(*l, limit)
			continue
		}
		var err error
		if limit.Dimension == sluice.Spend {
			var m Money
			if strings.HasPrefix(strings.TrimPrefix(text, "$"), "-") {
				err = wrong(moneyFix, "%q is negative", text)
			} else {
				err = m.UnmarshalText([]byte(text))
			}
			limit.Amount = int64(m)
		} else {
			var c Count
			err = c.UnmarshalText([]byte(text))
			limit.Amount = int64(c)
		}
		switch {
		case err != nil:
			d.reportError(e.value, at, err)
		case limit.Amount == 0:
			d.report(nodePos(e.value), at, "write none for no limit, or suspend the tenant to stop it", "a limit of 0 admits nothing")
		default:
			*l = append(*l, limit)
		}
	}
}

// RunLimits bounds a run as a whole, written as one mapping:
// {steps: 50, tokens: 1M, spend: $2, time: 10m}.
type RunLimits []sluice.Limit

func runNames() []string {
	out := make([]string, 0, len(quota.RunBounds))
	for _, b := range quota.RunBounds {
		out = append(out, b.Name)
	}
	return out
}

// decodeNode reads the mapping.
func (l *RunLimits) decodeNode(d *decoder, n node, path string) {
	for _, e := range d.entries(n, path) {
		at := join(path, e.key)
		i := slices.Index(runNames(), e.key)
		if i < 0 {
			d.report(e.keyPos, at, suggest(e.key, runNames()), "unknown bound of a run")
			continue
		}
		d.mark(at, e)
		text, ok := d.scalar(e.value, at)
		if !ok {
			continue
		}
		if text == unlimited {
			*l = append(*l, sluice.Limit{Dimension: quota.RunBounds[i].Of, Window: sluice.PerRun, Amount: auth.Unlimited})
			continue
		}
		limit, err := quota.ParseRunBound(e.key, strings.ReplaceAll(text, "_", ""))
		if err != nil {
			d.report(nodePos(e.value), at, "write none for no bound", "%s", err)
			continue
		}
		*l = append(*l, limit)
	}
}

// MarshalJSON writes the mapping, for the effective configuration.
func (l RunLimits) MarshalJSON() ([]byte, error) {
	out := make(map[string]string, len(l))
	for _, limit := range l {
		name := quota.RunBoundName(limit.Dimension)
		switch {
		case limit.Amount == auth.Unlimited:
			out[name] = unlimited
		case limit.Dimension == sluice.Spend:
			out[name] = sluice.Nano(limit.Amount).String()
		case limit.Dimension == sluice.RunTime:
			out[name] = Duration(limit.Amount).String()
		default:
			out[name] = Count(limit.Amount).String()
		}
	}
	return json.Marshal(out)
}

// MarshalJSON writes the mapping, for the effective configuration.
func (l Limits) MarshalJSON() ([]byte, error) {
	out := make(map[string]string, len(l))
	for _, limit := range l {
		i := slices.IndexFunc(limitFields, func(f limitField) bool {
			return f.of.Dimension == limit.Dimension && f.of.Window == limit.Window
		})
		if i < 0 {
			continue
		}
		switch {
		case limit.Amount == auth.Unlimited:
			out[limitFields[i].name] = unlimited
		case limit.Dimension == sluice.Spend:
			out[limitFields[i].name] = sluice.Nano(limit.Amount).String()
		default:
			out[limitFields[i].name] = Count(limit.Amount).String()
		}
	}
	return json.Marshal(out)
}
