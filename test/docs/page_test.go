package docs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sluice/test/gateway"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// listens is where a gateway says that it does.
var listens = regexp.MustCompile(`http://[0-9.:]+`)

// followed is a page of docs whose commands are run in a folder of their own.
type followed struct {
	t    *testing.T
	page []byte
	dir  string
}

func follow(t *testing.T, page string) *followed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return &followed{t, text, t.TempDir()}
}

// write puts a file where the commands find it.
func (f *followed) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// yaml is the page's first block of configuration.
func (f *followed) yaml() string { return string(yamlBlock.FindSubmatch(f.page)[1]) }

// plainGateway is a configuration to which a page's own is added.
const plainGateway = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
lame_duck: 0s
providers: {sim: {dialect: openai, engine: vllm, simulated: true, price: {input: $1, output: $2}}}
pools: {chat: {backends: [{name: a, provider: sim, model: sim-small, domain: a}, {name: b, provider: sim, model: sim-small, domain: b}]}}
models: {sim-small: {pools: [chat]}}
`

// run serves sluice.yaml and runs all shell blocks of the page in one shell, which finds
// the gateway at $SLUICE. It wants texts in what they print.
func (f *followed) run(want ...string) {
	f.t.Helper()
	binary := gateway.Binary(f.t)
	serve := exec.Command(binary, "serve", "--config", "sluice.yaml")
	serve.Dir, serve.Stderr = f.dir, io.Discard
	told, err := serve.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		f.t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	}()
	var at []string
	for lines := bufio.NewScanner(told); len(at) < 2 && lines.Scan(); {
		at = append(at, listens.FindAllString(lines.Text(), -1)...)
	}
	if len(at) < 2 {
		f.t.Fatalf("the gateway says that it listens at %q", at)
	}
	var script strings.Builder
	for _, m := range shellBlock.FindAllSubmatch(f.page, -1) {
		script.Write(m[1])
	}
	cmd := exec.CommandContext(f.t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "SLUICE="+at[0], "SLUICE_ADMIN="+at[1])
	out, err := cmd.CombinedOutput()
	for _, w := range want {
		if !strings.Contains(string(out), w) {
			f.t.Errorf("there is no %q in what the page's commands print", w)
		}
	}
	if err != nil || f.t.Failed() {
		f.t.Errorf("%v\n%s", err, out)
	}
}

// TestIdempotency follows docs/idempotency.md.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	f := follow(t, "idempotency.md")
	f.write("sluice.yaml", plainGateway+"tenants: {acme: {}}\n"+f.yaml())
	f.run("idempotency_mismatch", "HTTP/1.1 422", "by its Idempotency-Key", "acme", "Idempotent-Replayed: true", "HTTP/1.1 400")
}
