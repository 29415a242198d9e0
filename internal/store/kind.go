package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strconv"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
)

// kind is what many entries have in common: who asked by which key, for what, where that
// went, how it ended. It is a row of entry_kinds, and an entry refers to it: to write two
// in five of an entry's facts again with each is most of what an entry costs.
type kind struct {
	project                                               sluice.ProjectID
	key                                                   sluice.KeyID
	model                                                 sluice.ModelID
	pool                                                  sluice.PoolID
	backend                                               sluice.BackendID
	provider                                              sluice.ProviderID
	task, upstreamModel, servedModel, policy              string
	operation, dialect, serviceTier, priceVersion, finish string
	status                                                int
	class                                                 sluice.Class
	outcome                                               sluice.Outcome
	reason                                                sluice.Reason
	source                                                sluice.UsageSource
	tier                                                  ladder.Tier
	final, late, stream, anomalous                        bool
}

func kindOf(e *ledger.Entry) kind {
	return kind{
		project: e.Project, key: e.Key, model: e.Model, pool: e.Pool, backend: e.Backend, provider: e.Provider,
		task: e.Task, upstreamModel: e.UpstreamModel, servedModel: e.ServedModel, policy: e.Policy,
		operation: e.Operation, dialect: e.Dialect, serviceTier: e.Usage.ServiceTier, priceVersion: e.PriceVersion, finish: e.Finish,
		status: e.Status, class: e.Class, outcome: e.Outcome, reason: e.Reason, source: e.Usage.Source, tier: e.Tier,
		final: e.Final, late: e.Late, stream: e.Stream, anomalous: e.Usage.Anomalous,
	}
}

// kindColumns are the columns of entry_kinds, those of kind.values last.
var kindColumns = []string{
	"id", "mark", "project", "key_id", "task", "class", "model", "pool", "backend", "provider", "upstream_model", "served_model", "policy",
	"final", "outcome", "reason", "status", "late", "stream", "operation", "dialect", "service_tier", "usage_source", "anomalous",
	"price_version", "finish", "tier",
}

func (k *kind) values() []any {
	return []any{
		string(k.project), string(k.key), k.task, k.class.String(), string(k.model), string(k.pool), string(k.backend), string(k.provider),
		k.upstreamModel, k.servedModel, k.policy, flag(k.final), k.outcome.String(), k.reason.String(), int64(k.status), flag(k.late), flag(k.stream),
		k.operation, k.dialect, k.serviceTier, k.source.String(), flag(k.anomalous), k.priceVersion, k.finish, int64(k.tier),
	}
}

// mark is what a kind is known by: half of a hash of its values.
func (k *kind) mark() string {
	var b []byte
	for _, v := range k.values() {
		switch v := v.(type) {
		case string:
			b = append(strconv.AppendInt(b, int64(len(v)), 10), ':')
			b = append(b, v...)
		case int64:
			b = append(strconv.AppendInt(b, v, 10), ';')
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// member is an entry and its kind, an index of kinds.
type member struct {
	*ledger.Entry
	kind int
}

// kinds are those of a batch.
type kinds struct {
	rows []member
	all  []kind
	mark []string
	ids  []int64
}

// kindsOf finds the kinds of entries.
func kindsOf(rows []*ledger.Entry) *kinds {
	ks := &kinds{rows: make([]member, len(rows))}
	index := map[kind]int{}
	for i, e := range rows {
		k := kindOf(e)
		if i > 0 && k == ks.all[ks.rows[i-1].kind] { // as very often
			ks.rows[i] = member{e, ks.rows[i-1].kind}
			continue
		}
		n, ok := index[k]
		if !ok {
			n = len(ks.all)
			index[k] = n
			ks.all = append(ks.all, k)
			ks.mark = append(ks.mark, k.mark())
		}
		ks.rows[i] = member{e, n}
	}
	return ks
}

// find reads the kinds' numbers, and adds those that are new. What a batch needs it asks
// for itself: a database that has lost what another batch had added has what this one
// refers to.
func (ks *kinds) find(ctx context.Context, db *DB, tx *sql.Tx) error {
	known, err := ks.read(ctx, db, tx)
	if err != nil || known == len(ks.all) {
		return err
	}
	var last int64
	if err := tx.QueryRowContext(ctx, "UPDATE meta SET value = value + $1 WHERE name = 'entry_kind' RETURNING value", len(ks.all)-known).Scan(&last); err != nil {
		return err
	}
	insert := insertSQL("entry_kinds", kindColumns, 1) + " ON CONFLICT (mark) DO NOTHING" // another replica may have been first
	for i, id := range ks.ids {
		if id != 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, insert, append([]any{last, ks.mark[i]}, ks.all[i].values()...)...); err != nil {
			return err
		}
		last--
	}
	if known, err = ks.read(ctx, db, tx); err == nil && known < len(ks.all) {
		err = fmt.Errorf("%d kinds of entries were added and are not there", len(ks.all)-known)
	}
	return err
}

// read reads the numbers of those that are there, and how many they are.
func (ks *kinds) read(ctx context.Context, db *DB, tx *sql.Tx) (known int, err error) {
	rows, err := db.engine.withIDs(ctx, tx, "SELECT mark, id FROM entry_kinds", "mark", ks.mark)
	if err != nil {
		return 0, err
	}
	ids := make(map[string]int64, len(ks.mark))
	_, err = collect(rows, func(r scanner) (struct{}, error) {
		var mark string
		var id int64
		err := r.Scan(&mark, &id)
		ids[mark] = id
		return struct{}{}, err
	})
	ks.ids = make([]int64, len(ks.mark))
	for i, m := range ks.mark {
		ks.ids[i] = ids[m]
	}
	return len(ids), err
}
