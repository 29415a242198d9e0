package app

import (
	"context"
	"net/http"

	"sluice/internal/admin"
	"sluice/internal/batch"
	"sluice/internal/exchange"
	"sluice/internal/handover"
	"sluice/internal/jobs"
	"sluice/internal/proxy"
	"sluice/internal/store"
)

// mounts is the face of files and batches as the proxy serves it.
func mounts(f *batch.Face) []proxy.Mount {
	routes := f.Routes()
	out := make([]proxy.Mount, 0, len(routes))
	for _, r := range routes {
		out = append(out, proxy.Mount{
			Pattern: r.Pattern, Operation: r.Operation, Dialect: r.Dialect, MaxBody: r.MaxBody, Once: r.Once,
			Serve: func(w http.ResponseWriter, q *http.Request, by proxy.Caller) error {
				return r.Serve(w, q, batch.Caller(by))
			},
		})
	}
	return out
}

// later takes requests that are answered later.
func later(f *batch.Face) func(context.Context, *exchange.Request) (proxy.Deferred, error) {
	return func(ctx context.Context, r *exchange.Request) (proxy.Deferred, error) {
		d, err := f.Defer(ctx, r)
		return proxy.Deferred(d), err
	}
}

// batches is what an operator sees of them.
func (a *App) batches(db *store.DB) admin.Batches {
	return admin.Batches{
		List: a.desk.Jobs,
		Find: func(ctx context.Context, id jobs.JobID) (jobs.Job, error) { return db.Job(ctx, "", id) },
		HandedOver: func(ctx context.Context, id jobs.JobID) ([]handover.Share, error) {
			return db.HandOvers(ctx, string(id))
		},
		Cancel: a.desk.Cancel, Progress: a.desk.Progress, Unanswered: a.desk.Unanswered,
	}
}
