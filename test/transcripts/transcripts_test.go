package transcripts

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"sluice/test/bubble"
)

var update = flag.Bool("update", false, "rewrite what the gateway does in the transcripts: sent, client, outcome")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transcript is one file.
type transcript struct {
	name    string // PROVIDER/SITUATION
	path    string
	archive *txtar.Archive
	files   map[string]string
	config  string
	answers int // how many of the upstream's it has
}

// all are the transcripts of testdata, one folder for each provider.
func all(t *testing.T) (out []*transcript) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	for _, path := range paths {
		out = append(out, read(t, path))
	}
	return out
}

func read(t *testing.T, path string) *transcript {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	tr := &transcript{
		name: filepath.Base(dir) + "/" + strings.TrimSuffix(filepath.Base(path), ".txtar"),
		path: path, archive: txtar.Parse(b), files: map[string]string{},
	}
	for _, f := range tr.archive.Files {
		tr.files[f.Name] = string(f.Data)
	}
	for tr.has(numbered("upstream", tr.answers)) {
		tr.answers++
	}
	tr.config = tr.files["sluice.yaml"]
	if tr.config == "" {
		b, err := os.ReadFile(filepath.Join(dir, "sluice.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		tr.config = string(b)
	}
	if tr.files["request"] == "" || len(strings.TrimSpace(string(tr.archive.Comment))) == 0 {
		t.Fatalf("%s needs a comment that says what it shows, and the file request", path)
	}
	return tr
}

func (tr *transcript) has(name string) bool { _, ok := tr.files[name]; return ok }

// numbered is the name of a file that there may be several of.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + " " + strconv.Itoa(i+1)
}

// run plays the transcript, its answers changed by cut, which may be nil.
func (tr *transcript) run(t *testing.T, cut func(*answer)) (res *result) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		var answers []*answer
		for i := range tr.answers {
			a, err := parseAnswer(tr.files[numbered("upstream", i)])
			if err != nil {
				t.Fatalf("%s: %v", numbered("upstream", i), err)
			}
			if cut != nil {
				cut(a)
			}
			answers = append(answers, a)
		}
		req, err := parseRequest(tr.files["request"])
		if err != nil {
			t.Fatalf("request: %v", err)
		}
		res = play(t, compiled(t, filepath.Dir(tr.path), tr.config), answers, req)
	})
	return res
}

// produced is what of a transcript is the gateway's.
func produced(res *result) map[string]string {
	got := map[string]string{"client": res.client, "outcome": res.outcome()}
	for i, s := range res.sent {
		got[numbered("sent", i)] = s
	}
	return got
}

// TestTranscripts runs testdata/PROVIDER/SITUATION.txtar; README.md says what they are.
func TestTranscripts(t *testing.T) {
	for _, tr := range all(t) {
		t.Run(tr.name, func(t *testing.T) {
			res := tr.run(t, nil)
			if t.Failed() {
				return
			}
			judge(t, tr, res)
			got := produced(res)
			if *update {
				tr.rewrite(t, got)
				return
			}
			tr.compare(t, got)
		})
	}
}

// compare holds what came to what the transcript says.
func (tr *transcript) compare(t *testing.T, got map[string]string) {
	t.Helper()
	names := []string{"client", "outcome"}
	for i := range max(tr.answers, 1) {
		names = append(names, numbered("sent", i))
	}
	for name := range got {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if d := cmp.Diff(tr.files[name], got[name]); d != "" {
			t.Errorf("%s (-want +got; if the contract says so, rewrite with -update):\n%s", name, d)
		}
	}
}

// rewrite writes the transcript with what came.
func (tr *transcript) rewrite(t *testing.T, got map[string]string) {
	t.Helper()
	out := &txtar.Archive{Comment: tr.archive.Comment}
	add := func(name, text string) {
		if text != "" {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	add("sluice.yaml", tr.files["sluice.yaml"])
	add("request", tr.files["request"])
	for i := range max(tr.answers, len(got)-2) {
		add(numbered("sent", i), got[numbered("sent", i)])
		add(numbered("upstream", i), tr.files[numbered("upstream", i)])
	}
	add("client", got["client"])
	add("outcome", got["outcome"])
	if err := os.WriteFile(tr.path, txtar.Format(out), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnyChunking runs every transcript again with the upstream's bytes cut otherwise:
// in one, in single bytes, and at random, as often as SLUICE_TRANSCRIPT_CUTS says.
func TestAnyChunking(t *testing.T) {
	times := 1
	if v := os.Getenv("SLUICE_TRANSCRIPT_CUTS"); v != "" {
		var err error
		if times, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, tr := range all(t) {
		t.Run(tr.name, func(t *testing.T) {
			tr.compare(t, produced(tr.run(t, func(a *answer) { a.cutAt(func() int { return 1 << 30 }) })))
			tr.compare(t, produced(tr.run(t, func(a *answer) { a.cutAt(func() int { return 1 }) })))
			for i := range times {
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(len(tr.path))))
				tr.compare(t, produced(tr.run(t, func(a *answer) { a.cutAt(func() int { return 1 + rnd.IntN(40) }) })))
				if t.Failed() {
					t.Fatalf("with cut %d", i)
				}
			}
		})
	}
}

// cutAt cuts what stands together into pieces of sizes that next tells.
func (a *answer) cutAt(next func() int) {
	var out []part
	var run []byte
	flush := func() {
		for len(run) > 0 {
			n := min(next(), len(run))
			out = append(out, part{data: run[:n:n]})
			run = run[n:]
		}
	}
	for _, p := range a.parts {
		if len(p.data) > 0 {
			run = append(run, p.data...)
			continue
		}
		flush()
		out = append(out, p)
	}
	flush()
	a.parts = out
}
