package cli

import (
	"fmt"
	"strings"

	"sluice/internal/admin"
)

// modelLimits are --per-model-limit MODEL:NAME=AMOUNT flags, by MODEL:NAME. A limit's name
// has no colon, so that a model's may have some.
type modelLimits map[string]string

func (m modelLimits) cut(key string) (model, limit string, ok bool) {
	i := strings.LastIndexByte(key, ':')
	if i <= 0 || i == len(key)-1 {
		return "", "", false
	}
	return key[:i], key[i+1:], true
}

// Validate is called when the command line is read.
func (m modelLimits) Validate() error {
	for key := range m {
		if _, _, ok := m.cut(key); !ok {
			return fmt.Errorf("%q names no model and limit: write fast:requests_per_minute=60, or *:concurrency=8 for each model by itself", key)
		}
	}
	return nil
}

func (m modelLimits) limits() map[string]admin.Limits {
	var out map[string]admin.Limits
	for key, amount := range m {
		model, limit, ok := m.cut(key)
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[string]admin.Limits)
		}
		if out[model] == nil {
			out[model] = make(admin.Limits)
		}
		out[model][limit] = admin.ParseAmount(amount)
	}
	return out
}
