package cache

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

//go:embed put.lua
var putScript string

//go:embed drop.lua
var dropScript string

// The pauses in which a Redis that does not answer is not asked.
const (
	redisFailures = 3 // in a row, before it is left alone
	redisPause    = time.Second
	redisMaxPause = 30 * time.Second
)

// redisPrefix begins all keys. An entry is PREFIXe:SCOPE:KEY; PREFIXall and PREFIXo:SCOPE
// are sorted sets of entries by when they expire, PREFIXsizes and PREFIXsums what they
// take, PREFIXnames whose they are.
const redisPrefix = "sluice:out:"

// RedisOptions is how Redis is reached.
type RedisOptions struct {
	URL     string // redis:// or rediss://
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Timeout time.Duration // of each question; 0 takes DefaultTimeout
	Bounds  Bounds
	Told    func(err error) // each failure; from any goroutine. nil is silent
}

// Redis is a Store that replicas share. It is one server, or one that is reached as one:
// its scripts touch keys that a cluster would part.
//
// Whatever it does takes at most the timeout, with no second try; after three failures in
// a row it is not asked for a second, doubled up to thirty, and then by one request at a
// time. Meanwhile nothing is kept and nothing found.
type Redis struct {
	o    RedisOptions
	c    *redis.Client
	put  *redis.Script
	drop *redis.Script

	mu     sync.Mutex
	failed int       // guarded by mu; in a row
	pause  time.Time // guarded by mu; until when it is left alone
}

var _ Store = (*Redis)(nil)

// NewRedis makes one. It connects when it is first asked.
func NewRedis(o RedisOptions) (*Redis, error) {
	ro, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("the address of Redis cannot be read: write redis://HOST:6379/0") // the cause may tell its password
	}
	o.Bounds = o.Bounds.WithDefaults()
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Told == nil {
		o.Told = func(error) {}
	}
	secure := ro.TLSConfig
	ro.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := o.Dial(ctx, network, addr)
		if err != nil || secure == nil {
			return conn, err
		}
		t := tls.Client(conn, secure)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return t, nil
	}
	ro.TLSConfig = nil
	ro.DialTimeout, ro.ReadTimeout, ro.WriteTimeout, ro.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
	ro.ContextTimeoutEnabled = true
	ro.MaxRetries, ro.DialerRetries = -1, 1
	ro.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Redis{o: o, c: redis.NewClient(ro), put: redis.NewScript(putScript), drop: redis.NewScript(dropScript)}, nil
}

// ask asks Redis one thing, within the time and unless it is left alone.
func (r *Redis) ask(ctx context.Context, f func(context.Context) error) error {
	if !r.may() {
		return errLeftAlone
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	err := f(ctx)
	if errors.Is(err, redis.Nil) {
		r.answered(nil)
		return err
	}
	if err != nil && context.Cause(ctx) == context.Canceled { // its request has ended
		return err
	}
	r.answered(err)
	return err
}

var errLeftAlone = errors.New("redis has failed and is left alone for now")

// may reports whether Redis may be asked. Of those who come when a pause is over the
// first may.
func (r *Redis) may() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed < redisFailures {
		return true
	}
	now := time.Now()
	if now.Before(r.pause) {
		return false
	}
	r.pause = now.Add(r.o.Timeout + time.Millisecond) // others wait for what it finds
	return true
}

func (r *Redis) answered(err error) {
	r.mu.Lock()
	if err == nil {
		r.failed = 0
		r.mu.Unlock()
		return
	}
	if r.failed++; r.failed >= redisFailures {
		pause := redisMaxPause
		if n := r.failed - redisFailures; n < 5 {
			pause = min(redisPause<<n, redisMaxPause)
		}
		r.pause = time.Now().Add(pause)
	}
	r.mu.Unlock()
	r.o.Told(err)
}

func member(scope string, k Key) string { return scope + ":" + k.String() }

// Get implements Store.
func (r *Redis) Get(ctx context.Context, scope string, k Key) (value []byte, ok bool) {
	err := r.ask(ctx, func(ctx context.Context) (err error) {
		value, err = r.c.Get(ctx, redisPrefix+"e:"+member(scope, k)).Bytes()
		return err
	})
	return value, err == nil
}

// Put implements Store.
func (r *Redis) Put(ctx context.Context, i Item) bool {
	size := int64(len(i.Value)) + overhead
	if size > r.o.Bounds.PerOwner {
		return false
	}
	name, kept := member(i.Scope, i.Key), int64(0)
	err := r.ask(ctx, func(ctx context.Context) (err error) {
		keys := []string{redisPrefix + "e:" + name, redisPrefix + "all", redisPrefix + "o:" + i.Scope, redisPrefix + "sizes", redisPrefix + "sums"}
		if err = r.c.HSet(ctx, redisPrefix+"names", i.Scope, i.Owner.String()).Err(); err != nil {
			return err
		}
		kept, err = r.put.Run(ctx, r.c, keys, i.Value, size, i.Expires.UnixMilli(), time.Now().UnixMilli(), name, i.Scope, r.o.Bounds.PerOwner, r.o.Bounds.Total, redisPrefix).Int64()
		return err
	})
	return err == nil && kept == 1
}

func (r *Redis) forget(ctx context.Context, index string, which any) (n int, err error) {
	err = r.ask(ctx, func(ctx context.Context) (err error) {
		n, err = r.drop.Run(ctx, r.c, []string{index, redisPrefix + "all", redisPrefix + "sizes", redisPrefix + "sums"}, which, redisPrefix).Int()
		return err
	})
	return n, err
}

// Drop implements Store.
func (r *Redis) Drop(ctx context.Context, scope string, k Key) {
	_, _ = r.forget(ctx, redisPrefix+"all", member(scope, k))
}

// purgePart is how many entries one question of Purge forgets.
const purgePart = 256

// Purge implements Store.
func (r *Redis) Purge(ctx context.Context, scope string) (n int, err error) {
	index := redisPrefix + "all"
	if scope != "" {
		index = redisPrefix + "o:" + scope
	}
	for {
		some, err := r.forget(ctx, index, purgePart)
		if n += some; err != nil || some < purgePart {
			return n, err
		}
	}
}

// Levels implements Store. Entries that have expired since something was last kept count.
func (r *Redis) Levels(ctx context.Context) (out []Level, err error) {
	err = r.ask(ctx, func(ctx context.Context) error {
		names, err := r.c.HGetAll(ctx, redisPrefix+"names").Result()
		if err != nil {
			return err
		}
		sums, err := r.c.HGetAll(ctx, redisPrefix+"sums").Result()
		if err != nil {
			return err
		}
		for scope, name := range names {
			l := Level{Owner: name}
			if _, err := fmt.Sscan(sums[scope], &l.Bytes); err != nil {
				continue // there is nothing of it
			}
			if l.Entries, err = r.c.ZCard(ctx, redisPrefix+"o:"+scope).Result(); err != nil {
				return err
			}
			out = append(out, l)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Level) int { return strings.Compare(a.Owner, b.Owner) })
	return out, err
}

// Close implements Store.
func (r *Redis) Close() error { return r.c.Close() }
