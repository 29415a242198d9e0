// Package sdk points official clients, unchanged but for base URL and key, at a
// live gateway. It needs Node 20 and takes minutes, so it runs where
// SLUICE_TEST_SDK is set: make test sets it.
package sdk

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/app"
	"sluice/internal/auth"
)

// gateway starts one and returns what the clients' tests need of it.
func gateway(t *testing.T) []string {
	t.Helper()
	if os.Getenv("SLUICE_TEST_SDK") == "" {
		t.Skip("SLUICE_TEST_SDK is not set: run make test")
	}
	data := t.TempDir()
	env := map[string]string{"SLUICE_TEST_DATA": data}
	for _, name := range []string{"SLUICE_KEY", "SLUICE_SMALL_KEY", "SLUICE_POOR_KEY"} {
		minted, err := auth.Mint("test")
		if err != nil {
			t.Fatal(err)
		}
		env[name] = minted.Key.Reveal()
	}
	var log bytes.Buffer
	a, err := app.New(t.Context(), app.Options{
		ConfigPath: "sluice.yaml",
		Getenv:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Stderr:     &log,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what the gateway warned of:\n%s", warnings(log.String()))
		}
		for name, key := range env {
			if strings.HasSuffix(name, "_KEY") && strings.Contains(log.String(), key) {
				t.Errorf("%s stands in the log", name)
			}
		}
	})
	token, err := os.ReadFile(filepath.Join(data, "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	out := []string{
		"SLUICE_URL=http://" + a.Addr(), "SLUICE_ADMIN=http://" + a.AdminAddr(),
		"SLUICE_ADMIN_TOKEN=" + strings.TrimSpace(string(token)),
	}
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out
}

// warnings leaves out what went well: a log of hundreds of requests would hide the
// test that failed.
func warnings(log string) string {
	var out strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"level":"INFO"`) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	t.Logf("%s", out)
}

// installed tells whether the modules of dir were installed since its lock file changed.
func installed(dir string) bool {
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return false
	}
	modules, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	return err == nil && !modules.ModTime().Before(lock.ModTime())
}

// errorsOf writes every error that the gateway tells, and returns where.
func errorsOf(t *testing.T) string {
	corpus := "SLUICE_ERROR_CORPUS=" + filepath.Join(t.TempDir(), "errors.jsonl")
	run(t, "../..", []string{corpus}, "go", "test", "-count=1", "-run", "^TestErrorCorpus$", "./internal/wire")
	return corpus
}

// TestNode runs openai-node, the Anthropic SDK, the Gemini SDK and the Vercel AI SDK.
func TestNode(t *testing.T) {
	env := append(gateway(t), errorsOf(t))
	if !installed("node") {
		run(t, "node", nil, "npm", "ci", "--no-fund", "--no-audit")
	}
	run(t, "node", env, "node", "--test", "--test-concurrency=1", "--test-reporter=spec")
}

// TestGo runs openai-go, and holds the bodies that translations make to the types of
// the official clients of every dialect. It is a module of its own.
func TestGo(t *testing.T) {
	corpus := "SLUICE_DIALECT_CORPUS=" + filepath.Join(t.TempDir(), "corpus.jsonl")
	env := append(gateway(t), corpus, errorsOf(t))
	run(t, "../..", env, "go", "test", "-count=1", "-run", "^TestCorpus$", "./internal/dialect")
	run(t, "go", env, "go", "test", "-count=1", "-v", "./...")
}
