package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/admin"
	"sluice/internal/versions"
)

var by = admin.Change{Author: "ada", Reason: "a test"}

// second is plainFile with a second model.
var second = strings.Replace(plainFile, "  sim-small: {pools: [small]}", "  sim-small: {pools: [small]}\n  again: {pools: [small]}", 1)

func (b *bench) reload(text string) {
	b.t.Helper()
	b.write(text)
	if err := b.app.Reload(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) hasModel(name string) bool {
	b.t.Helper()
	status, _, _ := b.do("GET", "http://"+b.app.Addr()+"/v1/models/"+name, b.key, "")
	return status == 200
}

// change changes routes as the API does.
func (b *bench) change(backend string, weight int64) error {
	b.t.Helper()
	_, err := b.app.setRoutes(b.t.Context(), admin.RouteChange{Backends: map[string]admin.BackendRouteChange{backend: {Weight: &weight}}}, by)
	return err
}

// What was rolled back to is in force, stays so over restarts, reloads and changes made
// on top of it, and ends when the file is changed.
func TestRollbackHoldsUntilTheFileChanges(t *testing.T) {
	b := newBench(t)
	b.start()
	b.reload(second)
	if !b.hasModel("again") {
		t.Fatal("the second version is not in force")
	}
	got, err := b.app.rollback(t.Context(), "", by)
	if err != nil || got.Version.Number != 3 || got.Version.Of != 1 || got.OffFile == "" {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, step := range []string{"the rollback", "a reload", "a restart", "a change", "another restart"} {
		switch step {
		case "a reload":
			b.reload(second)
		case "a restart", "another restart":
			b.stop()
			b.start()
		case "a change":
			if err := b.change("small-a", 5); err != nil {
				t.Fatal(err)
			}
		}
		if b.hasModel("again") {
			t.Errorf("after %s the file is in force", step)
		}
		if b.app.offFile() == "" {
			t.Errorf("after %s nothing says that the file is not in force", step)
		}
	}
	if r := b.app.routes().Routes[0].Pools[0].Backends[0]; r.Weight != 5 {
		t.Errorf("the change is lost: %+v", r)
	}
	b.reload(second + "\n# touched\n")
	if !b.hasModel("again") || b.app.offFile() != "" {
		t.Error("the file was changed and is not followed")
	}
	if _, err := os.Stat(versions.HeldPath(b.env["DATA"])); !os.IsNotExist(err) {
		t.Errorf("the hold is still there: %v", err)
	}
}

// A file that was changed, and not read yet, is followed by the next reload, although
// routes were changed in between.
func TestChangeDoesNotHoldOffAnUnreadFile(t *testing.T) {
	b := newBench(t)
	b.start()
	b.write(second)
	if err := b.change("small-a", 2); err != nil {
		t.Fatal(err)
	}
	if b.hasModel("again") {
		t.Error("a change of routes has read the file")
	}
	b.reload(second)
	if !b.hasModel("again") {
		t.Error("the file is not followed")
	}
}

// Secrets that stand in the file are in no version and come from the file of now; a
// version that needs one which is gone is refused, and nothing has changed.
func TestRollbackNeedsSecretsOfTheFile(t *testing.T) {
	b := newBench(t)
	const secret = "sk-in-the-open-1"
	open := strings.Replace(plainFile, "engine: vllm, ", "engine: vllm, headers: {X-Key: "+secret+"}, ", 1)
	b.write(open)
	b.start()
	b.reload(strings.Replace(open, "  sim-small: {pools: [small]}", "  sim-small: {pools: [small]}\n  again: {pools: [small]}", 1))
	if _, err := b.app.rollback(t.Context(), "1", by); err != nil {
		t.Fatal(err)
	}
	if b.hasModel("again") {
		t.Error("the first version is not in force")
	}
	b.stop()
	b.start() // the mark is exchanged for the file's secret
	b.reload(strings.ReplaceAll(open, secret, "sk-exchanged-22"))
	if _, err := b.app.rollback(t.Context(), "2", by); err == nil || !strings.Contains(err.Error(), "providers.sim.headers.X-Key") {
		t.Errorf("a version whose secret is gone: %v", err)
	}
	if d, err := b.app.compare(t.Context(), "2", "current"); err != nil || len(d.Differences) != 1 {
		t.Errorf("it can still be compared: %+v, %v", d, err)
	}
	err := filepath.WalkDir(b.env["DATA"], func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("the secret stands in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A hold that cannot be put in force any more does not quietly give way to the file:
// the start fails and says what to do.
func TestStartWithABrokenHold(t *testing.T) {
	b := newBench(t)
	b.env["REGION"] = "eu"
	b.write(strings.Replace(plainFile, "context: 128k", "region: ${REGION}, context: 128k", 1))
	b.start()
	b.reload(second)
	if _, err := b.app.rollback(t.Context(), "1", by); err != nil {
		t.Fatal(err)
	}
	b.stop()
	delete(b.env, "REGION")
	_, err := New(t.Context(), Options{ConfigPath: b.file, Getenv: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok }})
	if err == nil || !strings.Contains(err.Error(), "REGION is not set") || !strings.Contains(err.Error(), "held.json") {
		t.Errorf("got %v", err)
	}
}

// Without a store, and without a file, what can be done is done.
func TestVersionsWithoutAStore(t *testing.T) {
	b := newBench(t)
	away := "lame_duck: 0s\nstore: postgres://sluice@127.0.0.1:1/none?sslmode=disable"
	b.write(strings.Replace(plainFile, "lame_duck: 0s", away, 1))
	b.start()
	b.reload(strings.Replace(second, "lame_duck: 0s", away, 1))
	if _, ok := b.app.snapshot.Load().Table.Models["again"]; !ok {
		t.Error("the reload is not in force")
	}
	got, err := b.app.rollback(t.Context(), "", by)
	if err != nil || got.Version.Number != 0 || !strings.Contains(strings.Join(got.Warnings, "\n"), "the store does not answer") {
		t.Errorf("a rollback: %+v, %v", got, err)
	}
	if _, ok := b.app.snapshot.Load().Table.Models["again"]; ok {
		t.Error("the rollback is not in force")
	}
	if list, err := b.app.listVersions(t.Context(), 0, 10); err != nil || len(list.Versions) != 3 || list.Partial == "" {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestVersionsWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	a, err := New(t.Context(), Options{Data: dir, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Getenv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop(t.Context())
	zero := int64(0)
	got, err := a.setRoutes(t.Context(), admin.RouteChange{Backends: map[string]admin.BackendRouteChange{"sim-small-a": {Weight: &zero}}}, by)
	if err != nil || got.Version.Number != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err = a.rollback(t.Context(), "", by); err != nil || got.OffFile != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), a.devKey) {
		t.Errorf("the development key shows: %s, %v", text, err)
	}
}
