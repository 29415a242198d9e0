package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/auth"
)

// tenants reads one tenant, or all if id is empty, with their projects.
func tenants(ctx context.Context, q querier, id sluice.TenantID) ([]auth.Tenant, error) {
	where, args := "", []any(nil)
	if id != "" {
		where, args = " WHERE id = $1", []any{string(id)}
	}
	found, err := documents[auth.Tenant](ctx, q, "SELECT doc FROM tenants"+where+" ORDER BY id", args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if id != "" {
		where = " WHERE tenant_id = $1"
	}
	rows, err := q.QueryContext(ctx, "SELECT tenant_id, doc FROM projects"+where+" ORDER BY tenant_id, id", args...)
	if err != nil {
		return nil, err
	}
	byTenant := map[sluice.TenantID]*auth.Tenant{}
	for i := range found {
		byTenant[found[i].ID] = &found[i]
	}
	_, err = collect(rows, func(r scanner) (struct{}, error) {
		var tenant sluice.TenantID
		var p auth.Project
		err := r.Scan(&tenant, document{&p})
		if t := byTenant[tenant]; t != nil {
			t.Projects = append(t.Projects, p)
		}
		return struct{}{}, err
	})
	return found, err
}

// Tenants lists all tenants by id, with their projects.
func (db *DB) Tenants(ctx context.Context) (ts []auth.Tenant, err error) {
	err = db.view(ctx, func(tx *sql.Tx) error {
		ts, err = tenants(ctx, tx, "")
		return err
	})
	return ts, err
}

// Tenant returns one tenant with its projects; KindNotFound if there is none.
func (db *DB) Tenant(ctx context.Context, id sluice.TenantID) (t auth.Tenant, err error) {
	if id == "" {
		return t, notFound("tenant", "")
	}
	err = db.view(ctx, func(tx *sql.Tx) error {
		found, err := tenants(ctx, tx, id)
		t, err = one(found, err, "tenant", string(id))
		return err
	})
	return t, err
}

// CreateTenant adds a tenant and its projects; KindConflict if the id exists.
// Its plan need not be in the store: it may be declared in a file.
func (db *DB) CreateTenant(ctx context.Context, t auth.Tenant) error {
	if t.ID == "" {
		return sluice.Invalid("id", "is empty")
	}
	return db.authTx(ctx, "create tenant", func(tx *sql.Tx) error {
		if err := (record{&t.Origin, &t.Created, &t.Updated}).stamp("tenant", string(t.ID), time.Time{}, time.Now()); err != nil {
			return err
		}
		doc, err := tenantDoc(t)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO tenants (id, plan_id, doc) VALUES ($1, $2, $3)", string(t.ID), string(t.Plan), doc)
		if err := db.exists(err, "tenant", string(t.ID)); err != nil {
			return err
		}
		return db.insertProjects(ctx, tx, t)
	})
}

// tenantDoc is the document of a tenant, without its projects: they have rows of
// their own.
func tenantDoc(t auth.Tenant) (string, error) {
	t.Projects = nil
	return encode(t)
}

func (db *DB) insertProjects(ctx context.Context, tx *sql.Tx, t auth.Tenant) error {
	for _, p := range t.Projects {
		doc, err := encode(p)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO projects (tenant_id, id, doc) VALUES ($1, $2, $3)", string(t.ID), string(p.ID), doc)
		if err := db.exists(err, "project", string(p.ID)); err != nil {
			return err
		}
	}
	return nil
}

// UpdateTenant replaces a tenant and its projects; KindNotFound if there is
// none, KindConflict if a project that is left out still has keys, or if
// t.Updated is set and is not when the stored one was changed last.
func (db *DB) UpdateTenant(ctx context.Context, t auth.Tenant) error {
	return db.authTx(ctx, "update tenant", func(tx *sql.Tx) error {
		if t.ID == "" {
			return notFound("tenant", "")
		}
		found, err := tenants(ctx, tx, t.ID)
		was, err := one(found, err, "tenant", string(t.ID))
		if err != nil {
			return err
		}
		t.Created = was.Created
		if err := (record{&t.Origin, &t.Created, &t.Updated}).stamp("tenant", string(t.ID), was.Updated, time.Now()); err != nil {
			return err
		}
		if err := unusedProjects(ctx, tx, was, t); err != nil {
			return err
		}
		doc, err := tenantDoc(t)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE tenants SET plan_id = $1, doc = $2 WHERE id = $3", string(t.Plan), doc, string(t.ID)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM projects WHERE tenant_id = $1", string(t.ID)); err != nil {
			return err
		}
		return db.insertProjects(ctx, tx, t)
	})
}

// unusedProjects refuses an update that drops a project with keys.
func unusedProjects(ctx context.Context, tx *sql.Tx, was, t auth.Tenant) error {
	kept := map[sluice.ProjectID]bool{sluice.DefaultProject: true}
	for _, p := range t.Projects {
		kept[p.ID] = true
	}
	for _, p := range was.Projects {
		if kept[p.ID] {
			continue
		}
		n, err := countKeys(ctx, tx, "tenant_id = $1 AND project_id = $2", string(t.ID), string(p.ID))
		if err != nil {
			return err
		}
		if n > 0 {
			return conflict("project %q has %d keys: delete them or move them first", p.ID, n)
		}
	}
	return nil
}

func countKeys(ctx context.Context, tx *sql.Tx, where string, args ...any) (n int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM api_keys WHERE "+where, args...).Scan(&n)
	return n, err
}

// DeleteTenant removes a tenant without keys and without batches that have not
// ended; KindConflict if it has some. Its ledger stays; its files, and what is known
// of its batches, are swept away.
func (db *DB) DeleteTenant(ctx context.Context, id sluice.TenantID) error {
	return db.authTx(ctx, "delete tenant", func(tx *sql.Tx) error {
		n, err := countKeys(ctx, tx, "tenant_id = $1", string(id))
		if err != nil {
			return err
		}
		if n > 0 {
			return conflict("tenant %q has %d keys: delete them first, or suspend it", id, n)
		}
		if err := leaveJobs(ctx, tx, id); err != nil {
			return err
		}
		return deleted(tx.ExecContext(ctx, "DELETE FROM tenants WHERE id = $1", string(id)))("tenant", string(id))
	})
}

// keys reads the keys of a condition on k, all if it is empty.
func keys(ctx context.Context, q querier, where string, args ...any) ([]auth.Key, error) {
	if where != "" {
		where = " WHERE " + where
	}
	// One query, so that a key and its secrets are of one moment.
	rows, err := q.QueryContext(ctx, `
		SELECT k.id, k.doc, s.hash, s.not_after_us
		FROM api_keys AS k LEFT JOIN key_secrets AS s ON s.key_id = k.id`+where+`
		ORDER BY k.id, s.position`, args...)
	if err != nil {
		return nil, err
	}
	var out []auth.Key
	_, err = collect(rows, func(r scanner) (struct{}, error) {
		var id sluice.KeyID
		var doc []byte
		var hash sql.NullString
		var notAfter sql.NullInt64
		if err := r.Scan(&id, &doc, &hash, &notAfter); err != nil {
			return struct{}{}, err
		}
		if len(out) == 0 || out[len(out)-1].ID != id {
			var k auth.Key
			if err := (document{&k}).Scan(doc); err != nil {
				return struct{}{}, fmt.Errorf("key %s: %w", id, err)
			}
			out = append(out, k)
		}
		if !hash.Valid {
			return struct{}{}, nil
		}
		h, err := auth.ParseHash(hash.String)
		s := auth.SecretHash{Hash: h}
		if notAfter.Valid {
			s.NotAfter = fromMicros(notAfter.Int64)
		}
		k := &out[len(out)-1]
		k.Secrets = append(k.Secrets, s)
		return struct{}{}, err
	})
	return out, err
}

// Keys lists the keys of one tenant by id.
func (db *DB) Keys(ctx context.Context, t sluice.TenantID) ([]auth.Key, error) {
	found, err := keys(ctx, db.read, "k.tenant_id = $1", string(t))
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return found, nil
}

// Key returns one key of the tenant; KindNotFound if it has none of that id.
func (db *DB) Key(ctx context.Context, t sluice.TenantID, id sluice.KeyID) (auth.Key, error) {
	found, err := keys(ctx, db.read, "k.tenant_id = $1 AND k.id = $2", string(t), string(id))
	return one(found, err, "key", string(id))
}

// CreateKey adds a key with its secrets; KindConflict if the id exists. Its
// tenant and project need not be in the store: they may be declared in a file.
func (db *DB) CreateKey(ctx context.Context, k auth.Key) error {
	if k.ID == "" || k.Tenant == "" {
		return sluice.Invalid("id", "and tenant of a key must not be empty")
	}
	return db.authTx(ctx, "create key", func(tx *sql.Tx) error {
		if err := (record{&k.Origin, &k.Created, &k.Updated}).stamp("key", string(k.ID), time.Time{}, time.Now()); err != nil {
			return err
		}
		doc, err := encode(k)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO api_keys (id, tenant_id, project_id, doc) VALUES ($1, $2, $3, $4)",
			string(k.ID), string(k.Tenant), string(projectOf(k)), doc)
		if err := db.exists(err, "key", string(k.ID)); err != nil {
			return err
		}
		return insertSecrets(ctx, tx, k)
	})
}

func projectOf(k auth.Key) sluice.ProjectID {
	if k.Project == "" {
		return sluice.DefaultProject
	}
	return k.Project
}

func insertSecrets(ctx context.Context, tx *sql.Tx, k auth.Key) error {
	for i, s := range k.Secrets {
		var notAfter sql.NullInt64
		if !s.NotAfter.IsZero() {
			notAfter = sql.NullInt64{Int64: s.NotAfter.UnixMicro(), Valid: true}
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO key_secrets (key_id, position, hash, not_after_us) VALUES ($1, $2, $3, $4)",
			string(k.ID), i, s.Hash.Hex(), notAfter)
		if err != nil {
			return err
		}
	}
	return nil
}

// UpdateKey replaces a key and its secrets; KindNotFound if its tenant has none
// of that id, KindConflict if k.Updated is set and is not when the stored one
// was changed last.
func (db *DB) UpdateKey(ctx context.Context, k auth.Key) error {
	return db.authTx(ctx, "update key", func(tx *sql.Tx) error {
		found, err := keys(ctx, tx, "k.tenant_id = $1 AND k.id = $2", string(k.Tenant), string(k.ID))
		was, err := one(found, err, "key", string(k.ID))
		if err != nil {
			return err
		}
		k.Created = was.Created
		if err := (record{&k.Origin, &k.Created, &k.Updated}).stamp("key", string(k.ID), was.Updated, time.Now()); err != nil {
			return err
		}
		doc, err := encode(k)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE api_keys SET project_id = $1, doc = $2 WHERE id = $3", string(projectOf(k)), doc, string(k.ID)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM key_secrets WHERE key_id = $1", string(k.ID)); err != nil {
			return err
		}
		return insertSecrets(ctx, tx, k)
	})
}

// DeleteKey removes a key and its secrets; KindNotFound if the tenant has none
// of that id. To stop a key but keep its history readable, revoke it instead.
func (db *DB) DeleteKey(ctx context.Context, t sluice.TenantID, id sluice.KeyID) error {
	return db.authTx(ctx, "delete key", func(tx *sql.Tx) error {
		return deleted(tx.ExecContext(ctx, "DELETE FROM api_keys WHERE tenant_id = $1 AND id = $2", string(t), string(id)))("key", string(id))
	})
}
