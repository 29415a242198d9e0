package config

import (
	"time"

	"sluice/internal/idempotency"
)

// Idempotency bounds the answers that are kept for Idempotency-Key.
type Idempotency struct {
	Keep      Duration `json:"keep,omitempty" jsonschema:"for how long a request that is sent again with its key gets the answer of the first time"`
	MaxBytes  Bytes    `json:"max_bytes,omitempty" jsonschema:"largest answer that is kept; a larger one is delivered, and its request runs again"`
	PerTenant Bytes    `json:"per_tenant,omitempty" jsonschema:"of each tenant's answers; beyond it the oldest go"`
	Total     Bytes    `json:"total,omitempty" jsonschema:"of all answers, in the store; beyond it the oldest go, of tenants that have most"`
}

func (i *Idempotency) setDefaults() {
	*i = Idempotency{
		Keep: Duration(idempotency.DefaultKeep), MaxBytes: idempotency.DefaultMaxBytes,
		PerTenant: idempotency.DefaultPerTenant, Total: idempotency.DefaultTotal,
	}
}

func (i *Idempotency) limits() idempotency.Limits {
	return idempotency.Limits{Keep: time.Duration(i.Keep), MaxBytes: int(i.MaxBytes), PerTenant: int64(i.PerTenant), Total: int64(i.Total)}
}

// The bounds of what is kept.
const (
	minKeep     = Duration(time.Minute)
	maxKeep     = Duration(30 * 24 * time.Hour)
	minKeptByte = Bytes(1 << 10)
	maxKeptByte = Bytes(32 << 20)
)

func (v *validator) idempotency() {
	i := &v.c.Idempotency
	const at = "idempotency."
	if i.Keep < minKeep || i.Keep > maxKeep {
		v.fail(at+"keep", "write a time such as 24h", "%s is not between %s and %s", i.Keep, minKeep, maxKeep)
	}
	if i.MaxBytes < minKeptByte || i.MaxBytes > maxKeptByte {
		v.fail(at+"max_bytes", "write a size such as 1MiB", "%s is not between %s and %s", i.MaxBytes, minKeptByte, maxKeptByte)
	}
	if i.PerTenant < i.MaxBytes+idempotency.Overhead {
		v.fail(at+"per_tenant", "write more", "%s has no room for one answer of %s", i.PerTenant, i.MaxBytes)
	}
	if i.Total < i.PerTenant {
		v.fail(at+"total", "write more", "%s is less than one tenant may have", i.Total)
	}
}
