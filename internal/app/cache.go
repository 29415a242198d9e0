package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"

	"sluice"
	"sluice/internal/cache"
	"sluice/internal/egress"
	"sluice/internal/exchange"
)

// openCache puts the output cache in front of the exchange. Where its directory cannot be
// used it is in memory: no request fails for want of a cache.
func (a *App) openCache(x *exchange.Exchange, dialer *egress.Dialer) (*cache.Cache, error) {
	s := a.settings.Cache
	secret := []byte(s.Secret.Reveal())
	var store cache.Store
	switch s.Store {
	case "redis":
		r, err := a.openRedis(dialer)
		if err != nil {
			return nil, err
		}
		store = r
	case "disk":
		d, err := cache.OpenDisk(filepath.Join(a.settings.Data, "cache"), s.Bounds)
		if err == nil {
			store, secret = d, d.Secret()
			break
		}
		a.log.Warn("the output cache is in memory, since its directory cannot be used", slog.Any("error", err))
	}
	if store == nil {
		store = cache.NewMemory(s.Bounds)
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // it does not fail
	}
	a.cleanup.push("close output cache", func(context.Context) error { return store.Close() })
	return cache.New(cache.Options{
		Next: x.Run, Exchange: x, Store: store, Secret: secret, MaxEntry: s.MaxAnswer, Buffer: s.InFlight,
		Policy: func() string { return a.snapshot.Load().Version },
		Group:  func(t sluice.TenantID) string { return a.snapshot.Load().Groups[t] },
		Told:   a.metrics.Cached,
	}), nil
}

func (a *App) openRedis(dialer *egress.Dialer) (*cache.Redis, error) {
	s := a.settings.Cache
	host := ""
	if u, err := url.Parse(s.Redis.Reveal()); err == nil {
		host = u.Hostname()
	}
	o := egress.TransportOptions{AllowPrivate: true, Connect: s.Timeout}
	r, err := cache.NewRedis(cache.RedisOptions{
		URL: s.Redis.Reveal(), Timeout: s.Timeout, Bounds: s.Bounds,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialWith(ctx, network, addr, o)
		},
		Told: func(err error) {
			a.metrics.CacheFailed()
			a.log.Debug("redis did not answer", slog.String("host", host), slog.Any("error", err))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open the output cache: %w", err)
	}
	return r, nil
}
