// Package docs runs what the documentation tells people to run.
package docs

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestREADME follows the README as a new user would, in a clean copy of the
// repository: make run, the curl that it prints, and then every shell block.
func TestREADME(t *testing.T) {
	for _, port := range []string{"127.0.0.1:8080", "127.0.0.1:8081"} {
		l, err := net.Listen("tcp", port)
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("%s is in use here, and the README's commands need it: %v", port, err)
		}
		l.Close()
	}
	root := cleanCopy(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range shellBlock.FindAllSubmatch(readme, -1) {
		blocks = append(blocks, string(m[1]))
	}
	if len(blocks) < 6 || blocks[0] != "make run\n" || blocks[len(blocks)-1] != "make test\n" {
		t.Fatalf("the README's first block is not make run or its last not make test: %q", blocks)
	}

	greeting := serve(t, root)
	pasted := greeting[strings.Index(greeting, "curl"):]
	pasted, _, _ = strings.Cut(pasted, "\n\n")
	if out := shell(t, root, pasted); !strings.Contains(out, "data: [DONE]") || !strings.Contains(out, "Sluice-Request-Id: req_") {
		t.Errorf("the curl that make run prints gave:\n%s", out)
	}
	// One shell for all, since later blocks use the variables of earlier ones.
	out := shell(t, root, strings.Join(blocks[1:len(blocks)-1], ""))
	for _, want := range []string{
		"data: [DONE]",     // the streamed answer
		"settled",          // explain
		"(reported), $0.",  // its cost
		"\nTENANT",         // usage
		`"type":"message"`, // the answer in the other dialect
		"slk_",             // the new key
		"sim-small-a",      // status
		"balance: 0 open",  // the replay's comparison
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the README's commands print no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// serve runs make run until the test ends and returns what it prints.
func serve(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.Command("make", "run")
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(20 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Error("make run did not end within 20 s of SIGTERM")
		}
	})
	deadline := time.After(8 * time.Minute) // a cold build
	for {
		if s := out.String(); strings.Contains(s, "usage --by model\n") {
			return s
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("make run ended: %v\n%s", err, out.String())
		case <-deadline:
			t.Fatalf("make run did not greet:\n%s", out.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v in\n%s\n%s", err, script, out)
	}
	return string(out)
}

// cleanCopy is the repository as a clone would be, with what is not committed
// yet.
func cleanCopy(t *testing.T) string {
	t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	list.Dir = top
	names, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(top, name))
		if os.IsNotExist(err) {
			continue // removed, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
