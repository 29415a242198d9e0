package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
)

// LadderStatus is where a pool's degradation ladder stands, and why.
type LadderStatus struct {
	Mode         string           `json:"mode" enum:"shadow,on"`
	Tier         int              `json:"tier" doc:"That requests feel, from 0 (none) to 5 (shed); 0 in shadow"`
	Stands       int              `json:"stands" doc:"Tier on which it stands, felt or not"`
	Name         string           `json:"name" doc:"What that tier does: none, clamp, context, defer, smaller, or which classes are shed"`
	SinceSeconds float64          `json:"since_seconds" doc:"How long it has stood there"`
	Why          string           `json:"why,omitempty" doc:"What moved it there: queue_age, kv, refused, calm, pin, unpin, pin_expired or config"`
	Signals      LadderSignals    `json:"signals"`
	Up           *LadderBounds    `json:"up,omitempty" doc:"It goes up when one of these is reached for long enough"`
	Down         *LadderBounds    `json:"down,omitempty" doc:"It comes down when none of these is exceeded for hold_seconds"`
	HoldSeconds  float64          `json:"hold_seconds,omitempty"`
	CalmSeconds  float64          `json:"calm_seconds,omitempty" doc:"How long none of them has been exceeded"`
	Pin          *LadderPin       `json:"pin,omitempty" doc:"An operator's"`
	Deferred     int              `json:"deferred,omitempty" doc:"Requests of batch that wait for it to come down"`
	Done         map[string]int64 `json:"done" doc:"What it did to requests, or in shadow would have done: clamp, context, smaller, offer, shed"`
	Clamped      int64            `json:"clamped_tokens,omitempty" doc:"By how much output bounds were lowered"`
}

// LadderSignals is what moves a ladder, as it was seen last.
type LadderSignals struct {
	OldestSeconds float64 `json:"oldest_seconds" doc:"What waits longest, batch and what callers' own limits keep back aside"`
	KV            float64 `json:"kv" doc:"Part of the memory in use"`
	Refused       float64 `json:"refused" doc:"Part of the requests of the last ten seconds that were refused for want of room"`
}

// LadderBounds are bounds of its signals; what is 0 is not looked at.
type LadderBounds struct {
	OldestSeconds float64 `json:"oldest_seconds"`
	KV            float64 `json:"kv"`
	Refused       float64 `json:"refused"`
}

// LadderPin is an operator's pin.
type LadderPin struct {
	Tier    int       `json:"tier"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
}

// LadderFelt is what a request felt of a pool's ladder that was not on the ground.
type LadderFelt struct {
	Pool    string    `json:"pool"`
	Tier    int       `json:"tier" doc:"On which it stood"`
	Did     []string  `json:"did,omitempty" doc:"To the request: clamp, context, defer, smaller, offer, shed; none if it was served as it was asked for"`
	Why     string    `json:"why" doc:"What had put it up there: queue_age, kv, refused or pin"`
	AgeMS   int64     `json:"age_ms,omitempty" doc:"Of queue_age: how long what waited longest had, in milliseconds"`
	KV      int64     `json:"kv_permille,omitempty" doc:"Of kv: the memory in use"`
	Refused int64     `json:"refused_permille,omitempty" doc:"Of refused: of the requests of ten seconds, those that were refused for want of room"`
	By      string    `json:"by,omitempty" doc:"Of a pin: who"`
	Reason  string    `json:"reason,omitempty" doc:"Of a pin: why"`
	Since   time.Time `json:"since" doc:"It stood there"`
}

// LadderRow is the ladder of one pool.
type LadderRow struct {
	Pool string `json:"pool"`
	LadderStatus
}

type (
	laddersOut struct {
		Body struct {
			Ladders []LadderRow `json:"ladders" doc:"Of pools whose ladder is not off"`
		}
	}
	pinIn struct {
		Mutation
		Pool string `path:"pool" maxLength:"64"`
		Body struct {
			Tier    int    `json:"tier" minimum:"0" maximum:"5" doc:"0 none, 1 clamp, 2 context, 3 defer, 4 smaller, 5 shed"`
			Seconds int64  `json:"seconds" minimum:"1" maximum:"86400" doc:"How long; then the ladder goes on by itself"`
			Author  string `json:"author,omitempty" maxLength:"128" doc:"Who; the name of the admin token if left out"`
			Reason  string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why"`
		}
	}
	unpinIn struct {
		Mutation
		Pool string `path:"pool" maxLength:"64"`
	}
)

func (a *API) registerLadder(api huma.API) {
	if a.o.View == nil || a.o.Pin == nil {
		return
	}
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"operate"}}
	}
	register(a, api, op("list-ladders", http.MethodGet, "/admin/v1/ladders", "Where the degradation ladder of each pool stands, and why"), a.ladders)
	register(a, api, op("pin-ladder", http.MethodPut, "/admin/v1/ladders/{pool}/pin", "Keep a pool's ladder on a tier until the pin expires, whatever its signals are"), a.pinLadder)
	register(a, api, op("unpin-ladder", http.MethodDelete, "/admin/v1/ladders/{pool}/pin", "Leave a pool's ladder to its signals again, from where it stands"), a.unpinLadder)
	if a.o.Preview != nil {
		register(a, api, op("preview-ladder", http.MethodPost, "/admin/v1/ladders/{pool}/preview", "What a tier would have done to the last minutes' requests: they are played on the engine that serves, under virtual time, with the tier and without"), a.previewLadder)
	}
}

func (a *API) ladders(context.Context, *struct{}) (*laddersOut, error) {
	out := &laddersOut{}
	out.Body.Ladders = []LadderRow{}
	v := a.o.View(maxRows)
	for i := range v.Pools {
		if s := ladderStatus(v.Pools[i].Ladder); s != nil {
			out.Body.Ladders = append(out.Body.Ladders, LadderRow{string(v.Pools[i].ID), *s})
		}
	}
	return out, nil
}

func (a *API) pinLadder(ctx context.Context, in *pinIn) (*orderOut, error) {
	by, reason, err := a.author(ctx, in.Body.Author, in.Body.Reason)
	if err != nil {
		return nil, err
	}
	pin := &ladder.Pin{Tier: ladder.Tier(in.Body.Tier), Author: by, Reason: reason, Expires: a.o.Now().Add(time.Duration(in.Body.Seconds) * time.Second)}
	return a.orderLadder(ctx, "ladder pinned", &in.Mutation, engine.Order{Pool: sluice.PoolID(in.Pool), Pin: pin})
}

func (a *API) unpinLadder(ctx context.Context, in *unpinIn) (*orderOut, error) {
	return a.orderLadder(ctx, "ladder unpinned", &in.Mutation, engine.Order{Pool: sluice.PoolID(in.Pool), Unpin: true})
}

// orderLadder carries out an order about a ladder, records it, and logs who gave it.
func (a *API) orderLadder(ctx context.Context, what string, in *Mutation, o engine.Order) (*orderOut, error) {
	if in.DryRun {
		return nil, hinted(sluice.Invalid("dry_run", "is not known here"), "POST /admin/v1/ladders/{pool}/preview shows what a tier would have done")
	}
	changed, kept, err := a.o.Pin(ctx, o)
	if err != nil {
		return nil, err
	}
	out := &orderOut{}
	if out.Body.Changed = changed; !kept {
		out.Body.Note = "the store does not answer: it is in force in this process, and recorded for restarts and other replicas as soon as the store is back"
	}
	attrs := []slog.Attr{slog.String("by", operatorOf(ctx).ID), slog.Bool("changed", changed), slog.Bool("recorded", kept), slog.String("pool", string(o.Pool))}
	if p := o.Pin; p != nil {
		attrs = append(attrs, slog.Int("tier", int(p.Tier)), slog.String("author", p.Author), slog.String("reason", p.Reason), slog.Time("until", p.Expires.UTC()))
	}
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
	return out, nil
}

// ladderStatus is a pool's ladder, nil if it has none.
func ladderStatus(v *engine.LadderView) *LadderStatus {
	if v == nil {
		return nil
	}
	part := func(permille int64) float64 { return float64(permille) / 1000 }
	out := &LadderStatus{
		Mode: v.Mode.String(), Tier: int(v.Acting.Tier()), Stands: int(v.Rung.Tier()), Name: v.Rung.String(), SinceSeconds: v.Since.Seconds(), Why: v.Cause.String(),
		Signals:     LadderSignals{v.Signal.Age.Seconds(), part(v.Signal.KV), part(v.Signal.Refused)},
		HoldSeconds: v.Hold.Seconds(), CalmSeconds: v.Calm.Seconds(), Deferred: v.Deferred, Done: v.Counts.Effects(), Clamped: int64(v.Counts.ClampedTokens),
	}
	bounds := func(b ladder.Bounds) *LadderBounds {
		if b == (ladder.Bounds{}) {
			return nil
		}
		return &LadderBounds{b.Age.Seconds(), part(b.KV), part(b.Refused)}
	}
	out.Up, out.Down = bounds(v.Next), bounds(v.Exit)
	if p := v.Pin; p != nil {
		out.Pin = &LadderPin{Tier: int(p.Tier), By: p.Author, Reason: p.Reason, Since: p.At.UTC(), Expires: p.Expires.UTC()}
	}
	return out
}
