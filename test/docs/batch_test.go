package docs

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/auth"
	"sluice/test/gateway"
)

// TestBatch follows docs/batch.md on examples/batch.yaml.
func TestBatch(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/batch.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/batch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nlame_duck: 0s\n" + string(example)
	if err := os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	minted, err := auth.Mint("test")
	if err != nil {
		t.Fatal(err)
	}
	binary := gateway.Binary(t)
	serve := exec.Command(binary, "serve", "--config", "sluice.yaml")
	serve.Dir, serve.Env = dir, append(os.Environ(), "ACME_KEY="+minted.Key.Reveal())
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
		script.WriteString("\necho\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "SLUICE="+at[0], "SLUICE_ADMIN="+at[1], "KEY="+minted.Key.Reveal())
	out, err := cmd.CombinedOutput()
	for _, want := range []string{
		`"custom_id":"question-4","response":{"status_code":200`, // the batch's output
		`"custom_id":"one","result":{"type":"succeeded"`,         // the message batch's results
		`"object":"chat.completion"`,                             // the answer that came later
		"BATCH", "completed",                                     // list
		"4: 0 waiting, 0 running, 4 succeeded", // show
		"12 lines to partner as batch_",        // and of one that was handed over
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in what the page's commands print", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}
