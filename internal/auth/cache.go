package auth

import (
	"time"

	"sluice"
)

// OutputCache says that answers are kept and given again to the same request.
type OutputCache struct {
	TTL     time.Duration `json:"ttl"`                // how long, in nanoseconds; 0 keeps none
	Percent int64         `json:"percent,omitempty"`  // of what its usage would cost, that a kept answer costs
	Asked   bool          `json:"asked,omitempty"`    // only of requests that ask for it
	PerUser bool          `json:"per_user,omitempty"` // each end user's by themselves
	Apart   bool          `json:"apart,omitempty"`    // the same requests in flight are not made one
}

// cachesBy sets what a policy says of kept answers: the last of the list that says
// something.
func cachesBy(p *sluice.Policy, list ...*OutputCache) {
	for _, o := range list {
		if o != nil {
			p.CacheTTL, p.CachePercent = int64(max(o.TTL, 0)), min(max(o.Percent, 0), 100)
			p.CacheAsked, p.CachePerUser, p.CacheApart = o.Asked, o.PerUser, o.Apart
		}
	}
}
