package store

import (
	"context"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/ledger"
)

// Options says how a database is opened. Zero fields take the defaults.
type Options struct {
	Readers     int           // connections that read; 0 is 4
	BusyTimeout time.Duration // how long a statement waits for another process's lock (SQLite); 0 is 5 s
	ScanMax     int           // most entries that a usage question may read where no roll-up answers it; 0 is 200,000
}

// DB is the store. Its methods are safe for concurrent use.
type DB struct{}

// Open opens or creates the store at dsn, "sqlite:PATH" or "postgres://…", and
// brings its schema up to date. An error that wraps ErrUnavailable may pass: the
// database is down. All others are for the operator.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) { return &DB{}, nil }

// Close closes the store.
func (db *DB) Close() error { return nil }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return nil }

// Append adds entries and rolls up those that are new, in one transaction.
func (db *DB) Append(ctx context.Context, entries []ledger.Entry) error { return nil }

// Usage answers q.
func (db *DB) Usage(ctx context.Context, q ledger.UsageQuery) ([]ledger.UsageRow, error) {
	return nil, nil
}

// Explain returns the entries of a request by attempt, with their Detail. One of
// another owner is KindNotFound.
func (db *DB) Explain(ctx context.Context, o ledger.Owner, id sluice.RequestID) ([]ledger.Entry, error) {
	return nil, nil
}

// Recent lists requests that have ended, newest first.
func (db *DB) Recent(ctx context.Context, q ledger.RecentQuery) (ledger.RecentPage, error) {
	return ledger.RecentPage{}, nil
}

// Spend returns what was used in the hour, day and month of now at every scope,
// to seed counters.
func (db *DB) Spend(ctx context.Context, now time.Time) ([]ledger.Spend, error) { return nil, nil }

// Verify compares roll-ups with the sums of the entries.
func (db *DB) Verify(ctx context.Context) (ledger.Audit, error) { return ledger.Audit{}, nil }

// Version is the change counter of the auth records: every write raises it.
func (db *DB) Version(ctx context.Context) (int64, error) { return 0, nil }

// Load returns all auth records and their version, as of one moment.
func (db *DB) Load(ctx context.Context) (auth.Records, error) { return auth.Records{}, nil }

// Plans lists all plans by id.
func (db *DB) Plans(ctx context.Context) ([]auth.Plan, error) { return nil, nil }

// Plan returns one plan; KindNotFound if there is none.
func (db *DB) Plan(ctx context.Context, id sluice.PlanID) (auth.Plan, error) {
	return auth.Plan{}, nil
}

// CreatePlan adds a plan; KindConflict if the id exists.
func (db *DB) CreatePlan(ctx context.Context, p auth.Plan) error { return nil }

// UpdatePlan replaces a plan; KindNotFound if there is none.
func (db *DB) UpdatePlan(ctx context.Context, p auth.Plan) error { return nil }

// DeletePlan removes a plan; KindConflict if a tenant has it.
func (db *DB) DeletePlan(ctx context.Context, id sluice.PlanID) error { return nil }

// Tenants lists all tenants by id, with their projects.
func (db *DB) Tenants(ctx context.Context) ([]auth.Tenant, error) { return nil, nil }

// Tenant returns one tenant with its projects; KindNotFound if there is none.
func (db *DB) Tenant(ctx context.Context, id sluice.TenantID) (auth.Tenant, error) {
	return auth.Tenant{}, nil
}

// CreateTenant adds a tenant and its projects; KindConflict if the id exists.
func (db *DB) CreateTenant(ctx context.Context, t auth.Tenant) error { return nil }

// UpdateTenant replaces a tenant and its projects; KindNotFound if there is
// none, KindConflict if a project that is left out still has keys.
func (db *DB) UpdateTenant(ctx context.Context, t auth.Tenant) error { return nil }

// DeleteTenant removes a tenant without keys; KindConflict if it has some. Its
// ledger stays.
func (db *DB) DeleteTenant(ctx context.Context, id sluice.TenantID) error { return nil }

// Keys lists the keys of one tenant by id.
func (db *DB) Keys(ctx context.Context, t sluice.TenantID) ([]auth.Key, error) { return nil, nil }

// Key returns one key of the tenant; KindNotFound if it has none of that id.
func (db *DB) Key(ctx context.Context, t sluice.TenantID, id sluice.KeyID) (auth.Key, error) {
	return auth.Key{}, nil
}

// CreateKey adds a key with its secrets; KindConflict if the id exists,
// KindNotFound if the tenant or project does not.
func (db *DB) CreateKey(ctx context.Context, k auth.Key) error { return nil }

// UpdateKey replaces a key and its secrets; KindNotFound if its tenant has none
// of that id.
func (db *DB) UpdateKey(ctx context.Context, k auth.Key) error { return nil }

// DeleteKey removes a key; KindNotFound if the tenant has none of that id.
func (db *DB) DeleteKey(ctx context.Context, t sluice.TenantID, id sluice.KeyID) error { return nil }

// Admins lists all admin tokens by id.
func (db *DB) Admins(ctx context.Context) ([]auth.AdminToken, error) { return nil, nil }

// CreateAdmin adds an admin token; KindConflict if the id exists.
func (db *DB) CreateAdmin(ctx context.Context, a auth.AdminToken) error { return nil }

// UpdateAdmin replaces an admin token; KindNotFound if there is none.
func (db *DB) UpdateAdmin(ctx context.Context, a auth.AdminToken) error { return nil }
