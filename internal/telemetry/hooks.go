package telemetry

import (
	"log/slog"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
)

// Hooks attaches metrics and log to the packages that tell what happens.
type Hooks struct {
	Metrics *Metrics
	Log     *slog.Logger
}

// Gate are the hooks of the waiting room.
func (h Hooks) Gate() admit.Hooks {
	return admit.Hooks{
		Granted: func(c engine.Call, g engine.Grant) {
			if g.Backend == nil {
				return
			}
			h.Metrics.Granted(g.Pool, c.Class, g.Queued)
			if g.Attempt == 1 && !c.Free && g.Backend.Price == nil && g.Backend.Ceiling != nil {
				h.Metrics.Ceiling(c.Model)
			}
		},
		Health: h.healthChanged,
		Tier:   h.tierChanged,
		Expired: func(id sluice.RequestID) {
			h.Log.Warn("hold expired", slog.String("request_id", string(id)))
		},
	}
}

// Exchange are the hooks of a request's life.
func (h Hooks) Exchange() exchange.Hooks {
	return exchange.Hooks{
		Attempt: h.Metrics.Attempt,
		Skipped: h.Metrics.Skipped, Copied: h.Metrics.Copied, Beside: h.Metrics.Beside,
		Output:  h.Metrics.Output,
		Journal: func(operation string, err error) { h.journalFailed(operation, err) },
		Settle: func(id sluice.RequestID, err error) {
			h.Log.Warn("settled out of turn", slog.String("request_id", string(id)), slog.Any("error", err))
		},
		Parked: func(b sluice.BackendID, key, code string) {
			h.Log.Warn("the provider refused a credential, or its account is spent", slog.String("backend", string(b)), slog.String("credential", key), slog.String("code", Clean(code)))
		},
		Retry:      h.Metrics.Retry,
		Hedge:      h.Metrics.Hedge,
		State:      h.Metrics.State,
		Drained:    h.Metrics.Drained,
		Background: h.Metrics.Background,
		Unmarked:   func(b sluice.BackendID) { h.Metrics.unmarked.WithLabelValues(string(b)).Inc() },
		Panic: func(id sluice.RequestID, value any, stack []byte) {
			h.Metrics.panics.Inc()
			h.Log.Error("panic", slog.String("request_id", string(id)), slog.Any("value", value), slog.String(stackKey, string(stack)))
		},
	}
}

// Journal are the hooks of the journal.
func (h Hooks) Journal() ledger.Hooks {
	return ledger.Hooks{
		Synced: func(took time.Duration, err error) {
			if err != nil {
				h.journalFailed("fsync", err)
				return
			}
			h.Metrics.Fsync(took)
		},
		DrainFailed: func(err error, retryIn time.Duration) {
			h.Metrics.JournalError("drain")
			h.Log.Warn("ledger drain failed", slog.Any("error", err), seconds("retry_in_s", retryIn))
		},
		WriteFailed: func(err error) { h.journalFailed("write", err) },
		Hole: func(file string, at, bytes int64) {
			h.Log.Error("a loss of power took records of the journal that were not on disk yet",
				slog.String("file", file), slog.Int64("at_byte", at), slog.Int64("bytes", bytes))
		},
	}
}

func (h Hooks) journalFailed(operation string, err error) {
	h.Metrics.JournalError(operation)
	h.Log.Error("journal failed", slog.String("operation", operation), slog.Any("error", err))
}
