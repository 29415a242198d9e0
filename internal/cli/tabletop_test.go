package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stopper ends a run at the first word of its progress.
type stopper struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (s *stopper) Write(b []byte) (int, error) {
	s.stop()
	return s.Buffer.Write(b)
}

// A run that is interrupted leaves a report of what there is, in every form, and
// says that it was.
func TestTabletopInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr := &stopper{stop: stop}
	var stdout bytes.Buffer
	args := []string{"tabletop", "run", "noisy-tenant", "--html", filepath.Join(dir, "page.html"), "-o", "json"}
	code := Run(ctx, Env{Args: args, Stdout: &stdout, Stderr: stderr, Getenv: func(string) (string, bool) { return "", false }})
	if code != exitFailed || !strings.Contains(stderr.String(), "interrupted: the report of policy sluice covers ") || !strings.Contains(stderr.String(), "and naive was not run") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	var report struct {
		Results []struct {
			Policy  string `json:"policy"`
			Partial bool   `json:"partial"`
			Ended   int64  `json:"ended_ns"`
			Length  int64  `json:"length_ns"`
		} `json:"results"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 1 || !report.Results[0].Partial || report.Results[0].Ended >= report.Results[0].Length {
		t.Errorf("got %+v", report.Results)
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if err != nil || !bytes.Contains(page, []byte("</html>")) {
		t.Errorf("the page is not whole: %v", err)
	}
}

// A report that has no place is told before the run.
func TestTabletopReportWithoutPlace(t *testing.T) {
	var stderr bytes.Buffer
	args := []string{"tabletop", "run", "noisy-tenant", "--html", filepath.Join(t.TempDir(), "none", "page.html")}
	code := Run(t.Context(), Env{Args: args, Stdout: &stderr, Stderr: &stderr, Getenv: func(string) (string, bool) { return "", false }})
	if code != exitUsage || !strings.HasPrefix(stderr.String(), "sluice: cannot write the report: ") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
