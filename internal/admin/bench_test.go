package admin

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/store"
)

// bench is the API over a real SQLite store and a real snapshot of its keys.
type bench struct {
	t      *testing.T
	api    *API
	db     *store.DB
	keeper *auth.Keeper
	token  string
	log    strings.Builder
	now    time.Time
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: db, now: time.Now()}
	admin := auth.MintAdmin()
	b.token = admin.Key.Reveal()
	var hasher auth.Hasher
	if err := db.CreateAdmin(ctx, auth.AdminToken{ID: string(admin.Ref.ID), Hash: admin.Ref.Hash(hasher), Created: b.now}); err != nil {
		t.Fatal(err)
	}
	origin := auth.Origin{File: "sluice.yaml", Line: 12}
	plan := auth.DefaultPlan("filed")
	plan.Origin = origin
	declared := auth.Records{
		Plans:   []auth.Plan{plan},
		Tenants: []auth.Tenant{{ID: "filed", Plan: "filed", Origin: origin, Projects: []auth.Project{{ID: "web"}}}},
		Keys:    []auth.Key{{ID: "k123456789", Tenant: "filed", Env: "live", Origin: origin}},
	}
	b.keeper = auth.NewKeeper(auth.KeeperOptions{Hasher: hasher}, declared, db)
	b.keeper.Start(ctx)
	o := Options{
		Plans: db, Tenants: db, Keys: db, Ledger: db, Admin: b.keeper.Admin, Declared: b.keeper.Declared, Changed: b.keeper.Refresh, Hasher: hasher,
		Log: slog.New(slog.NewJSONHandler(&b.log, nil)), Now: func() time.Time { return b.now },
	}
	for _, f := range change {
		f(&o)
	}
	if b.api, err = New(o); err != nil {
		t.Fatal(err)
	}
	b.do("POST", "/admin/v1/plans", `{"id":"std","limits":{"requests_per_minute":600,"spend_per_month":"$100"}}`, 201, nil)
	b.do("POST", "/admin/v1/tenants", `{"id":"acme","plan":"std"}`, 201, nil)
	b.do("POST", "/admin/v1/tenants/acme/projects", `{"id":"web"}`, 201, nil)
	t.Cleanup(func() {
		b.keeper.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// raw sends one request.
func (b *bench) raw(method, target, token, body string, h http.Header) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	maps.Copy(r.Header, h)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	return w.Result()
}

// do sends one request with the token, wants a status and decodes the answer.
func (b *bench) do(method, target, body string, want int, out any) string {
	b.t.Helper()
	res := b.raw(method, target, b.token, body, nil)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != want {
		b.t.Fatalf("%s %s: got %d, want %d: %s", method, target, res.StatusCode, want, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			b.t.Fatalf("%s %s: %v: %s", method, target, err, text)
		}
	}
	return string(text)
}

// identify reports the reason that a credential is refused for, "" if it is not.
func (b *bench) identify(credential string) string {
	_, err := b.keeper.Identify(credential, b.now)
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return e.Reason.String()
	}
	return err.Error()
}
