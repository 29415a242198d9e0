package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "run all tests of the table and write docs/faults.md")

// row is one line of docs/faults.md.
type row struct {
	id     string
	fault  string
	client string   // what the client sees
	ledger string   // what the ledger says
	tests  []string // PACKAGE.TEST, from the repository's root
}

// required are the rows of the fault table that this gateway has to have an answer
// for.
var required = strings.Fields("P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P12 P13 " +
	"U1 U2 U3 U4 U5 U6 U7 U8 U9 U10 U11 U12 U13 U14 U15 U16 U17 U18 U19 U20 U21 U22 U23 U24 U25 U26 U27 U28 U29 U30 U31 U32 " +
	"C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 V1 V2 V3 D1 D2 L4 R1 T1 O4")

const (
	here    = "test/faults."
	bubbles = "internal/proxy."

	transcripts = "test/transcripts."

	tablePos = "<!-- table -->"
)

const document = "docs/faults.md"

// TestTable holds the document to the rows, and the rows to the tests: each names
// tests that exist, each test that is named for a row is in it, and every row that
// is required is there.
func TestTable(t *testing.T) {
	root := filepath.Join("..", "..")
	declared := declaredTests(t, root)
	used := map[string]bool{}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.id)
		if len(r.tests) == 0 {
			t.Errorf("%s: nothing shows it", r.id)
		}
		for _, name := range r.tests {
			used[name] = true
			if !declared[name] {
				t.Errorf("%s: there is no test %s", r.id, name)
			}
		}
	}
	for _, id := range required {
		if !slices.Contains(ids, id) {
			t.Errorf("there is no row %s", id)
		}
	}
	for name := range declared {
		if id, ok := strings.CutPrefix(name[strings.LastIndex(name, ".")+1:], "TestFault_"); ok && !used[name] {
			t.Errorf("%s is in no row %s", name, strings.Split(id, "_")[0])
		}
	}
	path := filepath.Join(root, document)
	if *update {
		must(t, os.WriteFile(path, []byte(render(ran(t, root))), 0o600))
		return
	}
	old, err := os.ReadFile(path)
	must(t, err)
	if render(published(t, string(old))) != string(old) {
		t.Errorf("%s is not what its rows say: run go test ./test/faults -run TestTable -update", document)
	}
}

// declaredTests are the test functions of the repository.
func declaredTests(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == "testdata" || len(name) > 2 && name[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				out[filepath.ToSlash(dir)+"."+fn.Name.Name] = true
			}
		}
		return err
	})
	must(t, err)
	return out
}

// result is how a test ended: pass, or why it did not.
type result map[string]string

const pass = "pass"

// ran runs the tests of all rows.
func ran(t *testing.T, root string) result {
	t.Helper()
	byPackage := map[string][]string{}
	for _, r := range rows {
		for _, name := range r.tests {
			i := strings.LastIndex(name, ".")
			byPackage[name[:i]] = append(byPackage[name[:i]], name[i+1:])
		}
	}
	out := result{}
	for pkg, names := range byPackage {
		slices.Sort(names)
		args := []string{"test", "-json", "-count=1", "-timeout=10m", "-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$", "./" + pkg}
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		printed, err := cmd.Output()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		out.read(pkg, printed)
	}
	for name, how := range out {
		t.Logf("%s: %s", name, how)
	}
	return out
}

var why = regexp.MustCompile(`_test\.go:\d+: fails: (.*)`)

// read takes the events of one package's run.
func (r result) read(pkg string, events []byte) {
	told := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		if m := why.FindStringSubmatch(e.Output); m != nil {
			told[e.Test] = strings.TrimSpace(m[1])
		}
		switch e.Action {
		case "pass":
			r[pkg+"."+e.Test] = pass
		case "fail":
			r[pkg+"."+e.Test] = "fails"
		case "skip":
			r[pkg+"."+e.Test] = "fails: " + told[e.Test]
		}
	}
}

// ended is how a row ended.
func (r result) ended(w *row) string {
	for _, name := range w.tests {
		if how := r[name]; how != pass {
			return "**" + strings.TrimSuffix(how, ": ") + "**"
		}
	}
	return pass
}

// published reads the results out of the document.
func published(t *testing.T, text string) result {
	t.Helper()
	out := result{}
	_, table, _ := strings.Cut(text, tablePos)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for i := range rows {
		if i+2 >= len(lines) {
			break
		}
		cells := strings.Split(lines[i+2], " | ")
		how := strings.Trim(strings.TrimSuffix(cells[len(cells)-1], " |"), "*")
		for _, name := range rows[i].tests {
			if out[name] == "" || how == pass {
				out[name] = how
			}
		}
	}
	return out
}

func render(r result) string {
	var b strings.Builder
	passed := 0
	for i := range rows {
		if r.ended(&rows[i]) == pass {
			passed++
		}
	}
	fmt.Fprintf(&b, `# Faults

What a fault does to clients and to the ledger, and the test that shows it. Written by `+"`go test ./test/faults -run TestTable -update`"+` from a run of
all of them, and held to its rows and tests by `+"`make test`"+`; a row that fails stays here until it does not. %d of %d rows pass.

Words are those of [settlement.md](settlement.md). *Cut with a reason* is the dialect's error event and then an aborted connection, never a clean end.
*Elsewhere* is a further attempt at another backend of the pool or at a fallback pool, for which the client waits and of which it sees nothing; where there is none it gets the
error in this table. Tests without a package are in `+"`test/faults`"+` and run the whole gateway: in process over loopback, or, where it is killed, signalled or
starved, as a process of its own; those of `+"`test/transcripts`"+` play the fault on the golden transcripts of every provider whose stream is of text events.

What is not shown: that memory pressure sheds in stages (P11); a wall clock that is set under a whole process, since a test cannot set the machine's (T1 holds the core that
decides to it); a flood of HTTP/2 resets against a server that speaks it (C9).

%s
| id | fault | client | ledger | test | result |
|---|---|---|---|---|---|
`, passed, len(rows), tablePos)
	for i := range rows {
		w := &rows[i]
		var names []string
		for _, name := range w.tests {
			names = append(names, "`"+strings.TrimPrefix(name, here)+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", w.id, w.fault, w.client, w.ledger, strings.Join(names, "<br>"), r.ended(w))
	}
	return b.String()
}
