package admin

import (
	"context"
	"time"

	"sluice"
)

// LadderPreview is what a tier would have done to the last requests: they are played on
// the engine that serves, under virtual time, with the tier pinned and as it is.
type LadderPreview struct {
	Pool     string     `json:"pool"`
	Tier     int        `json:"tier"`
	From     time.Time  `json:"from"`
	To       time.Time  `json:"to"`
	Requests int64      `json:"requests" doc:"That were played"`
	Left     int64      `json:"left_out,omitempty" doc:"Of the same time, beyond the bound on how many are played"`
	Without  PreviewRun `json:"without" doc:"With no tier in force"`
	With     PreviewRun `json:"with" doc:"With the tier pinned"`
	Ledger   PreviewRun `json:"ledger" doc:"What became of the same requests"`
	Agrees   bool       `json:"agrees" doc:"Whether without has a place for as many as ledger has, within 5 % of the requests"`
	Reasons  []string   `json:"reasons,omitempty" doc:"What makes the two differ, or may"`
}

// PreviewRun is one of the two.
type PreviewRun struct {
	GoodputPerSecond float64        `json:"goodput_per_second" doc:"Requests that completed, by the second"`
	Completed        int64          `json:"completed"`
	Shed             int64          `json:"shed" doc:"Refused"`
	Ended            int64          `json:"ended" doc:"Failed, or were left by their clients"`
	Waiting          int64          `json:"waiting" doc:"Had neither an answer nor a refusal two minutes after the last came"`
	Clamped          int64          `json:"clamped" doc:"Answers that began with a lower bound"`
	ClampedTokens    int64          `json:"clamped_tokens"`
	Classes          []PreviewClass `json:"classes"`
}

// PreviewClass is one class of a run.
type PreviewClass struct {
	Class          string  `json:"class"`
	Requests       int64   `json:"requests"`
	Completed      int64   `json:"completed"`
	Shed           int64   `json:"shed"`
	Ended          int64   `json:"ended"`
	Waiting        int64   `json:"waiting"`
	WaitP50Seconds float64 `json:"wait_p50_seconds"`
	WaitP99Seconds float64 `json:"wait_p99_seconds"`
}

type (
	previewIn struct {
		Pool string `path:"pool" maxLength:"64"`
		Body struct {
			Tier    int   `json:"tier" minimum:"0" maximum:"5" doc:"0 none, 1 clamp, 2 context, 3 defer, 4 smaller, 5 shed"`
			Seconds int64 `json:"seconds,omitempty" minimum:"0" maximum:"1800" doc:"How much of the past is played; 300 if left out"`
		}
	}
	previewOut struct{ Body LadderPreview }
)

// previewLast is how much of the past a preview plays that does not say.
const previewLast = 5 * time.Minute

func (a *API) previewLadder(ctx context.Context, in *previewIn) (*previewOut, error) {
	last := time.Duration(in.Body.Seconds) * time.Second
	if last == 0 {
		last = previewLast
	}
	if a.o.Flush != nil {
		if err := a.o.Flush(ctx); err != nil {
			return nil, err
		}
	}
	p, err := a.o.Preview(ctx, sluice.PoolID(in.Pool), in.Body.Tier, last)
	if err != nil {
		return nil, err
	}
	return &previewOut{Body: p}, nil
}
