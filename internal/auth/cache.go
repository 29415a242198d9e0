package auth

import (
	"strconv"
	"strings"
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

// maxTTL bounds how long an answer is kept.
const maxTTL = 365 * 24 * time.Hour

// String is what ParseOutputCache reads; empty of nil.
func (o *OutputCache) String() string {
	if o == nil {
		return ""
	}
	parts := []string{"ttl=" + o.TTL.String()}
	if o.Asked {
		parts = append(parts, "for=asked")
	}
	if o.Percent > 0 {
		parts = append(parts, "price="+strconv.FormatInt(o.Percent, 10)+"%")
	}
	if o.PerUser {
		parts = append(parts, "per_user")
	}
	if o.Apart {
		parts = append(parts, "coalesce=false")
	}
	return strings.Join(parts, ",")
}

// ParseOutputCache reads how answers are kept: ttl=10m,for=asked,price=20%,per_user,coalesce=false,
// of which all but ttl may be left out. Empty is nil.
func ParseOutputCache(s string) (*OutputCache, error) {
	if s == "" {
		return nil, nil
	}
	o, given := &OutputCache{}, map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		ok := !given[name]
		given[name] = true
		switch name {
		case "ttl":
			d, err := time.ParseDuration(v)
			o.TTL, ok = d, ok && err == nil && 0 <= d && d <= maxTTL
		case "for":
			o.Asked, ok = v == "asked", ok && (v == "asked" || v == "all")
		case "price":
			digits, percent := strings.CutSuffix(v, "%")
			n, err := strconv.ParseInt(digits, 10, 64)
			o.Percent, ok = n, ok && percent && err == nil && 0 <= n && n <= 100
		case "per_user":
			o.PerUser, ok = v != "false", ok && (v == "" || v == "true" || v == "false")
		case "coalesce":
			o.Apart, ok = v == "false", ok && (v == "true" || v == "false")
		default:
			ok = false
		}
		if !ok {
			return nil, sluice.Invalid("output_cache", "has %q: write ttl=10m, and for=asked, price=20%%, per_user or coalesce=false behind it", part)
		}
	}
	if !given["ttl"] {
		return nil, sluice.Invalid("output_cache", "is without ttl: write ttl=10m, or ttl=0s to keep nothing")
	}
	return o, nil
}
