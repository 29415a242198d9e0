package config

import (
	"net/url"
	"slices"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/cache"
)

// Cache is where answers are kept for plans that say so.
type Cache struct {
	Store     CacheStore          `json:"store,omitempty" jsonschema:"disk (below data), memory, or redis, which replicas share"`
	Redis     *Secret             `json:"redis,omitempty" jsonschema:"its address, with redis: redis://USER:PASSWORD@HOST:6379/0, or rediss:// for TLS"`
	Secret    *Secret             `json:"secret,omitempty" jsonschema:"what keys and entries are authenticated with, the same for all replicas; needed with redis. Disk has one of its own beside the files"`
	Timeout   Duration            `json:"timeout,omitempty" jsonschema:"of one question to redis: after it, it is as if nothing were kept"`
	PerTenant Bytes               `json:"per_tenant,omitempty" jsonschema:"of the kept answers of a tenant, or of tenants that share; beyond it those go that were used least recently (with redis: that expire first)"`
	Total     Bytes               `json:"total,omitempty" jsonschema:"of all kept answers, likewise"`
	MaxAnswer Bytes               `json:"max_answer,omitempty" jsonschema:"largest answer that is kept"`
	InFlight  Bytes               `json:"in_flight,omitempty" jsonschema:"of answers on their way that may be kept, over all requests; beyond it further ones are not"`
	Share     map[string][]string `json:"share,omitempty" jsonschema:"tenants that share their kept answers, by a name for the group; no other tenant ever gets another's"`
}

func (c *Cache) setDefaults() {
	*c = Cache{
		Store: "disk", Timeout: Duration(cache.DefaultTimeout), PerTenant: Bytes(cache.DefaultPerOwner), Total: Bytes(cache.DefaultTotal),
		MaxAnswer: Bytes(cache.DefaultMaxEntry), InFlight: Bytes(cache.DefaultBuffer),
	}
}

// CacheStore is disk, memory or redis.
type CacheStore string

func (CacheStore) words() []string { return []string{"disk", "memory", "redis"} }

// OutputCache says that answers are kept and given again to the same request.
type OutputCache struct {
	TTL      Duration `json:"ttl" jsonschema:"how long an answer is kept; 0s keeps none"`
	For      CacheFor `json:"for,omitempty" jsonschema:"all requests, or those that ask for it with sluice-cache: use"`
	Price    Percent  `json:"price" zero:"meant" jsonschema:"what a kept answer costs, of what its usage would cost"`
	PerUser  bool     `json:"per_user,omitempty" jsonschema:"keep each end user's answers by themselves"`
	Coalesce bool     `json:"coalesce" zero:"meant" jsonschema:"make one of the same requests of a tenant that are in flight at a time"`
}

func (o *OutputCache) setDefaults() { o.For, o.Coalesce = "all", true }

// CacheFor is all or asked.
type CacheFor string

func (CacheFor) words() []string { return []string{"all", "asked"} }

func (o *OutputCache) record() *auth.OutputCache {
	if o == nil {
		return nil
	}
	return &auth.OutputCache{TTL: time.Duration(o.TTL), Percent: int64(o.Price), Asked: o.For == "asked", PerUser: o.PerUser, Apart: !o.Coalesce}
}

// CacheSettings is Cache for the process.
type CacheSettings struct {
	Store         string // disk, memory or redis
	Redis, Secret sluice.Secret
	Timeout       time.Duration
	Bounds        cache.Bounds
	MaxAnswer     int
	InFlight      int64
}

func (c *Cache) settings() CacheSettings {
	reveal := func(s *Secret) sluice.Secret {
		if s == nil {
			return sluice.Secret{}
		}
		return s.Secret
	}
	return CacheSettings{
		Store: string(c.Store), Redis: reveal(c.Redis), Secret: reveal(c.Secret), Timeout: time.Duration(c.Timeout),
		Bounds: cache.Bounds{PerOwner: int64(c.PerTenant), Total: int64(c.Total)}, MaxAnswer: int(c.MaxAnswer), InFlight: int64(c.InFlight),
	}
}

// groups is the group that each tenant shares its kept answers in.
func (c *Cache) groups() map[sluice.TenantID]string {
	out := make(map[sluice.TenantID]string)
	for name, tenants := range c.Share {
		for _, t := range tenants {
			out[sluice.TenantID(t)] = name
		}
	}
	return out
}

// The bounds of the cache's own.
const (
	maxAnswer       = Bytes(32 << 20)
	maxCacheTimeout = Duration(time.Second)
	minCacheSecret  = 16
)

func (v *validator) cache() {
	c := &v.c.Cache
	if c.Store == "redis" {
		if c.Redis == nil || c.Redis.Empty() {
			v.fail("cache.redis", "add redis: ${REDIS_URL}", "the cache is in redis, and no address is given")
		}
		if c.Secret == nil || len(c.Secret.Reveal()) < minCacheSecret {
			v.fail("cache.secret", "add secret: ${CACHE_SECRET}, of at least 16 characters, the same for all replicas", "whoever can write to redis could write answers")
		}
	} else {
		for _, field := range []string{"cache.redis", "cache.timeout"} {
			if v.given(field) {
				v.fail(field, "remove it, or write store: redis", "the cache is not in redis")
			}
		}
	}
	if c.Redis != nil && !c.Redis.Empty() {
		if u, err := url.Parse(c.Redis.Reveal()); err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" {
			v.fail("cache.redis", "write redis://HOST:6379/0 or rediss://…", "it is no address of redis")
		}
	}
	v.atMost("cache.timeout", c.Timeout > maxCacheTimeout, c.Timeout, maxCacheTimeout)
	v.atMost("cache.max_answer", c.MaxAnswer > maxAnswer, c.MaxAnswer, maxAnswer)
	v.atMost("cache.per_tenant", c.PerTenant > c.Total, c.PerTenant, c.Total)
	v.shares(c)
}

// shares sees that each tenant is in one group.
func (v *validator) shares(c *Cache) {
	in := make(map[string]string)
	for _, name := range sorted(c.Share) {
		at := join("cache.share", name)
		v.name(at, "group", name)
		for i, t := range c.Share[name] {
			if other := in[t]; other != "" {
				v.fail(index(at, i), "leave it in one", "tenant %q is in group %q too: answers of the one would reach the other", t, other)
			}
			in[t] = name
		}
		if len(slices.Compact(slices.Sorted(slices.Values(c.Share[name])))) < 2 {
			v.fail(at, "name at least two tenants", "a group of one shares nothing")
		}
	}
}
