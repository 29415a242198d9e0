package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/auth"
)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Version is the change counter of the auth records: every write raises it.
func (db *DB) Version(ctx context.Context) (int64, error) { return version(ctx, db.read) }

func version(ctx context.Context, q querier) (v int64, err error) {
	if err := q.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'auth_version'").Scan(&v); err != nil {
		return 0, fmt.Errorf("read version of auth records: %w", err)
	}
	return v, nil
}

// Load returns all auth records and their version, as of one moment.
func (db *DB) Load(ctx context.Context) (r auth.Records, err error) {
	err = db.view(ctx, func(tx *sql.Tx) error {
		var err error
		if r.Version, err = version(ctx, tx); err != nil {
			return err
		}
		if r.Plans, err = plans(ctx, tx, ""); err != nil {
			return err
		}
		if r.Tenants, err = tenants(ctx, tx, ""); err != nil {
			return err
		}
		if r.Keys, err = keys(ctx, tx, ""); err != nil {
			return err
		}
		r.Admins, err = admins(ctx, tx, "")
		return err
	})
	if err != nil {
		return auth.Records{}, fmt.Errorf("load auth records: %w", err)
	}
	return r, nil
}

// authTx runs a write to the auth tables and raises their version with it. To
// raise it first takes its row's lock, so that writes follow each other on
// Postgres too.
func (db *DB) authTx(ctx context.Context, what string, fn func(tx *sql.Tx) error) error {
	err := db.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = value + 1 WHERE name = 'auth_version'"); err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// record is what all auth records have: when they were made and changed, and
// that they are the store's own.
type record struct {
	origin           *auth.Origin // nil if it cannot be declared in a file
	created, updated *time.Time
}

// stamp prepares a record for writing. was is when the stored one was last
// changed, zero for a new one. A record that was read and changed carries the
// time of what it was read from, so a change in between is found.
func (r record) stamp(what, id string, was, now time.Time) error {
	now = now.UTC().Truncate(time.Microsecond)
	if r.origin != nil {
		*r.origin = auth.Origin{}
	}
	if was.IsZero() {
		if r.created.IsZero() {
			*r.created = now
		}
	} else if !r.updated.IsZero() && !r.updated.Equal(was) {
		return conflict("%s %q was changed by somebody else at %s", what, id, was.Format(time.RFC3339Nano))
	}
	if !now.After(was) {
		now = was.Add(time.Microsecond)
	}
	*r.created = r.created.UTC().Truncate(time.Microsecond)
	*r.updated = now
	return nil
}

func notFound(what, id string) error {
	return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no %s %q", what, id)}
}

func conflict(format string, args ...any) error {
	return &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Msg: fmt.Sprintf(format, args...)}
}

// exists turns a violated key into KindConflict.
func (db *DB) exists(err error, what, id string) error {
	if err != nil && db.engine.conflict(err) {
		return conflict("%s %q exists already", what, id)
	}
	return err
}

// encode is a record's document.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return string(b), nil
}

// document scans a record's document.
type document struct{ into any }

func (d document) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		b, isBytes := v.([]byte)
		if !isBytes {
			return fmt.Errorf("%T is not a document", v)
		}
		s = string(b)
	}
	return json.Unmarshal([]byte(s), d.into)
}

// documents reads the documents of a query's rows.
func documents[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (v T, err error) {
		err = r.Scan(document{&v})
		return v, err
	})
}

// one is the only element, or KindNotFound.
func one[T any](found []T, err error, what, id string) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, fmt.Errorf("read %s: %w", what, err)
	case len(found) == 0:
		return none, notFound(what, id)
	}
	return found[0], nil
}

func plans(ctx context.Context, q querier, id sluice.PlanID) ([]auth.Plan, error) {
	if id == "" {
		return documents[auth.Plan](ctx, q, "SELECT doc FROM plans ORDER BY id")
	}
	return documents[auth.Plan](ctx, q, "SELECT doc FROM plans WHERE id = $1", string(id))
}

// Plans lists all plans by id.
func (db *DB) Plans(ctx context.Context) ([]auth.Plan, error) { return plans(ctx, db.read, "") }

// Plan returns one plan; KindNotFound if there is none.
func (db *DB) Plan(ctx context.Context, id sluice.PlanID) (auth.Plan, error) {
	if id == "" {
		return auth.Plan{}, notFound("plan", "")
	}
	found, err := plans(ctx, db.read, id)
	return one(found, err, "plan", string(id))
}

// CreatePlan adds a plan; KindConflict if the id exists.
func (db *DB) CreatePlan(ctx context.Context, p auth.Plan) error {
	if p.ID == "" {
		return sluice.Invalid("id", "is empty")
	}
	return db.authTx(ctx, "create plan", func(tx *sql.Tx) error {
		if err := (record{&p.Origin, &p.Created, &p.Updated}).stamp("plan", string(p.ID), time.Time{}, time.Now()); err != nil {
			return err
		}
		doc, err := encode(p)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO plans (id, doc) VALUES ($1, $2)", string(p.ID), doc)
		return db.exists(err, "plan", string(p.ID))
	})
}

// UpdatePlan replaces a plan; KindNotFound if there is none, KindConflict if
// p.Updated is set and is not when the stored one was changed last.
func (db *DB) UpdatePlan(ctx context.Context, p auth.Plan) error {
	return db.authTx(ctx, "update plan", func(tx *sql.Tx) error {
		if p.ID == "" {
			return notFound("plan", "")
		}
		found, err := plans(ctx, tx, p.ID)
		was, err := one(found, err, "plan", string(p.ID))
		if err != nil {
			return err
		}
		p.Created = was.Created
		if err := (record{&p.Origin, &p.Created, &p.Updated}).stamp("plan", string(p.ID), was.Updated, time.Now()); err != nil {
			return err
		}
		doc, err := encode(p)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE plans SET doc = $1 WHERE id = $2", doc, string(p.ID))
		return err
	})
}

// DeletePlan removes a plan; KindConflict if a tenant of the store has it.
func (db *DB) DeletePlan(ctx context.Context, id sluice.PlanID) error {
	return db.authTx(ctx, "delete plan", func(tx *sql.Tx) error {
		var users int64
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM tenants WHERE plan_id = $1", string(id)).Scan(&users); err != nil {
			return err
		}
		if users > 0 {
			return conflict("plan %q is the plan of %d tenants: give them another first", id, users)
		}
		return deleted(tx.ExecContext(ctx, "DELETE FROM plans WHERE id = $1", string(id)))("plan", string(id))
	})
}

// deleted is KindNotFound if a DELETE found nothing.
func deleted(res sql.Result, err error) func(what, id string) error {
	return func(what, id string) error {
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err == nil && n == 0 {
			return notFound(what, id)
		}
		return err
	}
}

func admins(ctx context.Context, q querier, id string) ([]auth.AdminToken, error) {
	query, args := "SELECT doc, hash FROM admin_tokens ORDER BY id", []any(nil)
	if id != "" {
		query, args = "SELECT doc, hash FROM admin_tokens WHERE id = $1", []any{id}
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (a auth.AdminToken, err error) {
		var hash string
		if err := r.Scan(document{&a}, &hash); err != nil {
			return a, err
		}
		a.Hash, err = auth.ParseHash(hash)
		return a, err
	})
}

// Admins lists all admin tokens by id.
func (db *DB) Admins(ctx context.Context) ([]auth.AdminToken, error) { return admins(ctx, db.read, "") }

// CreateAdmin adds an admin token; KindConflict if the id exists.
func (db *DB) CreateAdmin(ctx context.Context, a auth.AdminToken) error {
	if a.ID == "" {
		return sluice.Invalid("id", "is empty")
	}
	return db.authTx(ctx, "create admin token", func(tx *sql.Tx) error {
		if a.Created.IsZero() {
			a.Created = time.Now().UTC().Truncate(time.Microsecond)
		}
		doc, err := encode(a)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO admin_tokens (id, hash, doc) VALUES ($1, $2, $3)", a.ID, a.Hash.Hex(), doc)
		return db.exists(err, "admin token", a.ID)
	})
}

// UpdateAdmin replaces an admin token; KindNotFound if there is none.
func (db *DB) UpdateAdmin(ctx context.Context, a auth.AdminToken) error {
	return db.authTx(ctx, "update admin token", func(tx *sql.Tx) error {
		doc, err := encode(a)
		if err != nil {
			return err
		}
		return deleted(tx.ExecContext(ctx, "UPDATE admin_tokens SET hash = $1, doc = $2 WHERE id = $3", a.Hash.Hex(), doc, a.ID))("admin token", a.ID)
	})
}
