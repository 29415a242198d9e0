package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/auth"
	"sluice/internal/fakellm"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

// historied is an admin API over a ledger with 30 days of requests, whose inputs
// grow.
func historied(t *testing.T) (address, token string) {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "sluice.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	minted := auth.MintAdmin()
	var hasher auth.Hasher
	if err := db.CreateAdmin(t.Context(), auth.AdminToken{ID: string(minted.Ref.ID), Hash: minted.Ref.Hash(hasher), Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	keeper := auth.NewKeeper(auth.KeeperOptions{Hasher: hasher}, auth.Records{}, db)
	keeper.Start(t.Context())
	api, err := admin.New(admin.Options{Plans: db, Tenants: db, Keys: db, Ledger: db, Admin: keeper.Admin, Hasher: hasher})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(func() {
		server.Close()
		keeper.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	var entries []ledger.Entry
	start := time.Now().UTC().Truncate(time.Hour).Add(-720 * time.Hour)
	for h := range 720 {
		at := start.Add(time.Duration(h) * time.Hour)
		entries = append(entries, ledger.Entry{
			Request: sluice.RequestID(fmt.Sprintf("r%d", h)), Attempt: 1, At: at, Ended: at, Tenant: []sluice.TenantID{"acme", "bolt"}[h%2], Model: "sim-small",
			Class: sluice.Interactive, Backend: "a", Provider: "p", Final: true, Outcome: sluice.Completed, Status: 200,
			Usage: sluice.Usage{Input: sluice.Tokens(1000 + 10*h), Output: 200, Source: sluice.UsageReported}, Cost: 1000,
		})
	}
	if err := db.Append(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	return server.URL, minted.Key.Reveal()
}

var pageBlocks = regexp.MustCompile("(?ms)^```(sh|text|yaml)\n(.*?)^```$")

// TestCapacityPage runs every command of docs/capacity.md, and holds its pictures
// and its files to what there is.
func TestCapacityPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples", "capacity"), os.DirFS("../../examples/capacity")); err != nil {
		t.Fatal(err)
	}
	address, token := historied(t)
	engine, err := fakellm.Listen(fakellm.Config{Listen: "127.0.0.1:0", Seed: 1, Speed: 50})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	defer func() {
		stop()
		<-done
	}()
	t.Chdir(dir)
	env := func(name string) (string, bool) { return "", false }
	commands, last := 0, ""
	for _, block := range pageBlocks.FindAllSubmatch(page, -1) {
		switch kind, text := string(block[1]), string(block[2]); kind {
		case "yaml":
			file, err := os.ReadFile("examples/" + regexp.MustCompile(`capacity/\S+\.yaml`).FindString(text))
			if err != nil || string(file) != text {
				t.Errorf("a file of the page is not the example: %v\n%s", err, text)
			}
		case "text":
			if last != text {
				t.Errorf("a picture of the page is not what the program says, which is\n%s", last)
			}
		default:
			for line := range strings.Lines(text) {
				commands++
				line, into, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "$ENGINE", "http://"+engine.Addr())), " > ")
				args := strings.Fields(line)[1:]
				if args[1] == "forecast" {
					args = append(args, "--admin", address, "--token", token)
				}
				var out, talk bytes.Buffer
				code := Run(t.Context(), Env{Args: args, Stdout: &out, Stderr: &talk, Getenv: env})
				// At fifty times its speed a step may be too short to be told.
				if code != exitOK && !(args[1] == "calibrate" && strings.Contains(talk.String(), "too little was measured")) {
					t.Errorf("%s: exit code %d: %s", line, code, talk.String())
				}
				if last = out.String(); last == "" {
					t.Errorf("%s says nothing", line)
				}
				if into != "" {
					// The profile of an engine at fifty times its speed is mostly noise; what
					// could not be told is taken from another one.
					for field, value := range map[string]string{"prefill_rate": "1M", "step_base": "150us"} {
						if !strings.Contains(last, "\n"+field+":") {
							last += field + ": " + value + "\n"
						}
					}
					if err := os.WriteFile(into, []byte(last), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if commands < 15 {
		t.Errorf("found %d commands on the page: the test does not see them any more", commands)
	}
}

// TestForecastText reads the table as a planner would.
func TestForecastText(t *testing.T) {
	address, token := historied(t)
	say := func(args ...string) string {
		t.Helper()
		var out, talk bytes.Buffer
		args = append([]string{"capacity", "forecast", "--admin", address, "--token", token}, args...)
		if code := Run(t.Context(), Env{Args: args, Stdout: &out, Stderr: &talk, Getenv: os.LookupEnv}); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, talk.String())
		}
		return out.String()
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"--gpus", "8"}, []string{"Above water until ", "8 GPUs hold the busiest hour", "a straight line through 4 weeks", "The spread of lengths is that of the latest 500 requests"}},
		{[]string{"--growth", "900%/month", "--horizon", "1y", "--gpus", "1", "--lose", "50%"}, []string{"Under water from ", "on: 1 GPU does not hold", "With the loss, now."}},
		{[]string{"--by", "tenant"}, []string{"1 GPU needed now", "acme ", "bolt ", "replicas now"}},
		{[]string{"--since", "3d"}, []string{"No growth: the history is too short"}},
		{[]string{"-o", "csv"}, []string{"at,requests_per_second,input_tokens_per_second", ",1,,,false"}},
		{[]string{"-o", "json", "--tenant", "acme"}, []string{`"source": "fitted"`, `"gpus_needed": 1`}},
	} {
		got := say(tc.args...)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: no %q in\n%s", tc.args, want, got)
			}
		}
	}
}

func TestFigureOf(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 66.666667: "66.7", 1_050_000: "1,050,000", 999.96: "1,000", 0.333333: "0.333", -1234.5: "-1,234", 120: "120", 1234.56: "1,235", 0.0004: "0",
	} {
		if got := figureOf(f); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
}
