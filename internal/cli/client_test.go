package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/admin"
)

// run executes one command line against a scripted admin API.
func run(t *testing.T, h http.HandlerFunc, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	file := filepath.Join(t.TempDir(), TokenFile)
	if err := os.WriteFile(file, []byte("sla_canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, talk bytes.Buffer
	code = Run(t.Context(), Env{
		Args: append(args, "--admin", s.URL, "--token-file", file), Stdout: &out, Stderr: &talk,
		Getenv: func(string) (string, bool) { return "", false },
	})
	if strings.Contains(out.String()+talk.String(), "canary") {
		t.Errorf("%v: the token is printed: %s%s", args, out.String(), talk.String())
	}
	return code, out.String(), talk.String()
}

func TestStatusExitCodes(t *testing.T) {
	for state, want := range map[string]int{"ready": 0, "degraded": 6, "starting": 7, "draining": 7} {
		code, out, _ := run(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer sla_canary" {
				t.Errorf("authorization: %q", r.Header.Get("Authorization"))
			}
			_ = json.NewEncoder(w).Encode(admin.Status{State: state, Dependencies: []admin.Dependency{{Name: "store", State: "degraded", Detail: "locked"}}})
		}, "status")
		if code != want || !strings.HasPrefix(out, state) || !strings.Contains(out, "store is degraded: locked") {
			t.Errorf("%s: exit %d, want %d: %s", state, code, want, out)
		}
		for _, of := range [][]string{{"status", "chat"}, {"status", "--tenant", "acme"}} {
			code, out, _ := run(t, func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(admin.Flows{State: state, Pools: []admin.PoolStatus{{Pool: "chat"}}})
			}, of...)
			if code != want || strings.HasPrefix(out, "the gateway is "+state) != (want != 0) || !strings.Contains(out, "pool chat: 0 waiting") {
				t.Errorf("%s, %v: exit %d, want %d: %s", state, of, code, want, out)
			}
		}
	}
}

func TestStatusSaysWhenABackendIsTried(t *testing.T) {
	_, out, _ := run(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{State: "ready", Pools: []admin.PoolStatus{{Pool: "p", Backends: []admin.BackendStatus{{Backend: "b", Health: "cooling", RetryInSeconds: 1.4}}}}})
	}, "status")
	if !strings.Contains(out, "cooling 1.4s") {
		t.Errorf("no time of the next try in %s", out)
	}
}

// What a table leaves out it says.
func TestStatusSaysWhatIsLeftOut(t *testing.T) {
	_, out, _ := run(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{State: "ready", MorePools: 7, MoreTop: 1, Top: []admin.Account{{Counters: []admin.Counter{{}}}}, Pools: []admin.PoolStatus{{Pool: "p", MoreBackends: 2}}})
	}, "status")
	for _, want := range []string{"(7 more pools, --limit N)", "(1 more scope, --limit N)", "(pool p: 2 more backends, --limit N)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

func TestVerifyExitCode(t *testing.T) {
	code, out, talk := run(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Verification{Differences: []string{"hour 12: 3 requests, entries say 4"}})
	}, "ledger", "verify")
	if code != exitFailed || !strings.Contains(out, "hour 12") || !strings.Contains(talk, "hint:") {
		t.Errorf("exit %d: %s%s", code, out, talk)
	}
}

func TestAnswersThatAreNoAdminAPI(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a page":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"a 404 page": http.NotFound,
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		},
		"a hang-up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		code, out, talk := run(t, h, "tenant", "list")
		if code != exitUnavailable || out != "" || !strings.Contains(talk, "hint:") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, talk)
		}
	}
}

// TestIDsStayInTheirSegment says that no id can reach another path.
func TestIDsStayInTheirSegment(t *testing.T) {
	var path, query string
	code, _, _ := run(t, func(w http.ResponseWriter, r *http.Request) {
		path, query = r.URL.EscapedPath(), r.URL.RawQuery
		fmt.Fprint(w, "{}")
	}, "tenant", "show", "../plans?x=1#y")
	if want := "/admin/v1/tenants/..%2Fplans%3Fx=1%23y"; code != 0 || path != want || query != "" {
		t.Errorf("exit %d, path %s, query %s, want %s", code, path, query, want)
	}
}

func TestProblemsAreTold(t *testing.T) {
	code, out, talk := run(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(admin.Problem{
			Status: 409, Kind: "conflict", Detail: "plan \"x\" exists already", Hint: "take another name", Param: "id",
			Errors: []admin.ProblemDetail{{Message: "first", Location: "a.yaml:1:2"}, {Message: "second"}},
		})
	}, "plan", "create", "x")
	want := "sluice: id: plan \"x\" exists already\nhint: take another name\n  a.yaml:1:2: first\n  second\n"
	if code != exitConflict || out != "" || talk != want {
		t.Errorf("exit %d\ngot  %q\nwant %q", code, talk, want)
	}
}
