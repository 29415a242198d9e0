package docs

import (
	"bufio"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/auth/jwt/jwttest"
	"sluice/test/gateway"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// listens is where a gateway says that it does.
var listens = regexp.MustCompile(`http://[0-9.:]+`)

// TestAuth follows docs/auth.md with an issuer in this process: its configuration is put
// in force as it stands there, but for the issuer's address, and its commands are run.
func TestAuth(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/auth.md")
	if err != nil {
		t.Fatal(err)
	}
	issuer := jwttest.New("")
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.URL = server.URL
	issuer.Add(t, "k1", "ES256")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("token.txt", issuer.Sign(t, "k1", map[string]any{
		"iss": issuer.URL, "aud": "sluice", "sub": "u-1", "exp": time.Now().Add(time.Hour).Unix(), "org": map[string]string{"id": "o-17"},
		"email": "ada@acme.test", "email_verified": true, "department": "search", "groups": []string{"all", "llm-users", "llm-batch"},
	}))
	declared := string(yamlBlock.FindSubmatch(page)[1])
	if !strings.Contains(declared, "https://login.example.com") {
		t.Fatal("the page's issuer is another")
	}
	write("sluice.yaml", `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
lame_duck: 0s
providers: {sim: {dialect: openai, engine: vllm, simulated: true, price: free}}
pools: {chat: {backends: [{name: a, provider: sim, model: sim-small, domain: a}, {name: b, provider: sim, model: sim-small, domain: b}]}}
models: {sim-small: {pools: [chat]}}
plans: {gold: {class: interactive}}
tenants: {acme: {plan: gold, projects: {search: {}}}, globex: {}}
`+strings.Replace(declared, "https://login.example.com", server.URL, 1))

	binary := gateway.Binary(t)
	serve := exec.Command(binary, "serve", "--config", "sluice.yaml")
	serve.Dir = dir
	said, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	told, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	}()
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
		}
	}()
	var at []string
	for lines := bufio.NewScanner(told); len(at) < 2 && lines.Scan(); {
		at = append(at, listens.FindAllString(lines.Text(), -1)...)
	}
	if len(at) < 2 {
		t.Fatalf("the gateway says that it listens at %q", at)
	}
	var script strings.Builder
	for _, m := range shellBlock.FindAllSubmatch(page, -1) {
		script.Write(m[1])
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "SLUICE="+at[0], "SLUICE_ADMIN="+at[1])
	out, err := cmd.CombinedOutput()
	for _, want := range []string{
		"is valid, version", "admitted", "jwt:corp:u-1", "batch", "tenant by {org.id}", // explain
		"chat.completion", // the answer
		"acme",            // usage
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in what the page's commands print", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}
