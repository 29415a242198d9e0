package app

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/auth/jwt"
	"sluice/internal/egress"
)

// readTokens takes tokens of issuers in the place of keys.
func (a *App) readTokens(dialer *egress.Dialer, issuers []jwt.Spec) {
	a.tokens = jwt.New(jwt.Options{Dialer: dialer, Log: a.log, Told: a.metrics.Token, Fetched: a.metrics.IssuerKeys})
	a.metrics.DeclareIssuers(issuers)
	a.tokens.Use(issuers)
	a.tokens.Start()
	a.cleanup.push("end fetches of issuers' keys", func(context.Context) error { a.tokens.Close(); return nil })
}

// bearer finds whose a token is, and what applies to him.
func (a *App) bearer(token string, now time.Time) (sluice.Principal, error) {
	b, err := a.tokens.Bearer(token, now)
	if err != nil {
		return sluice.Principal{}, err
	}
	return a.keeper.Admit(&b, now)
}
