package sluice

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is the height of each package: imports go strictly downward, but within
// the cores and within the machinery, where the allowed edges are those that
// do not form a cycle. Faces never import each other. A package that is not
// listed fails the test: give it a place here and in docs/architecture.md.
var layers = []struct {
	name     string
	sideways bool // packages of this layer may import each other
	packages []string
}{
	{"vocabulary", false, []string{""}},
	{"hints", false, []string{"prefetch"}},
	{"cores", true, []string{"byname", "quota", "demand", "sched", "route", "estimate", "price", "ladder", "engine", "fleet", "capacity"}},
	{"machinery", true, []string{"admit", "exchange", "dialect", "wire", "upstream", "egress", "socket", "front", "fetch", "catalog", "ledger", "auth", "store", "versions", "stateful", "idempotency", "dryrun", "rounds", "scrape", "probe", "hook", "jobs", "handover", "answer", "cache", "pins"}},
	{"faces", false, []string{"proxy", "batch", "admin", "replay", "calibrate", "fakellm", "tabletop"}},
	{"assembly: config and telemetry", false, []string{"config", "telemetry"}},
	{"assembly: app", false, []string{"app"}},
	{"assembly: cli", false, []string{"cli"}},
	{"commands", false, []string{"cmd"}},
}

// onlyFrom lists packages that few may import.
var onlyFrom = map[string][]string{
	"prefetch":  {"byname", "engine", "quota", "sched"},
	"store":     {"app"},
	"telemetry": {"app"},
	"app":       {"cli"},
	"cli":       {"cmd"},
	"fleet":     {"calibrate", "capacity", "config", "fakellm", "tabletop"},
	"config":    {"app", "cli"},
}

// never lists single edges that the layers alone would allow.
var never = map[string][]string{
	"engine": {"fleet", "capacity"},
}

// hints is all that a package below the cores may import: what it does has no outcome that
// a core could depend on, or it would be one.
var hints = []string{"unsafe"}

// pureFace is the one face that sees cores and the vocabulary alone: what it
// rehearses must be what decides in production, without a shell around it.
const pureFace = "tabletop"

// What a pure core may not touch: time comes in as an argument, and nothing
// starts, locks, logs or reads.
var (
	impureImports = []string{"sync", "sync/atomic", "context", "log", "log/slog", "net", "net/http", "os", "os/exec", "io/fs", "database/sql", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "unsafe"}
	impureTime    = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
)

// dialers are the functions and, as literals, the types that open connections;
// only egress may use them.
var dialers = map[string]struct{ funcs, literals []string }{
	"net":        {[]string{"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "DefaultResolver", "LookupHost", "LookupIP", "LookupAddr"}, []string{"Dialer", "Resolver"}},
	"net/http":   {[]string{"Get", "Post", "PostForm", "Head", "DefaultClient", "DefaultTransport"}, []string{"Client", "Transport"}},
	"crypto/tls": {[]string{"Dial", "DialWithDialer"}, []string{"Dialer"}},
}

// bannedNames say nothing about what is inside.
var bannedNames = []string{"util", "utils", "common", "types", "core", "models", "pkg", "helpers", "misc", "shared", "lib"}

// thirdParty lists the modules that shipped code may import; docs/dependencies.md
// has a line for each.
var thirdParty = []string{
	"github.com/alecthomas/kong",
	"github.com/aws/aws-sdk-go-v2",
	"github.com/coreos/go-oidc/v3",
	"github.com/danielgtaylor/huma/v2",
	"github.com/go-jose/go-jose/v4",
	"github.com/go-json-experiment/json",
	"github.com/goccy/go-yaml",
	"github.com/google/jsonschema-go",
	"github.com/google/uuid",
	"github.com/jackc/pgx/v5",
	"github.com/pressly/goose/v3",
	"github.com/prometheus/client_golang",
	"github.com/redis/go-redis/v9",
	"github.com/tiktoken-go/tokenizer",
	"golang.org/x/oauth2",
	"golang.org/x/sys",
	"modernc.org/sqlite",
}

// testOnly lists the modules that only _test.go files and *test packages import.
var testOnly = []string{
	"github.com/cockroachdb/datadriven",
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

type source struct {
	file string // slash-separated, from the repository root
	pkg  string // "engine" for internal/engine/…, "" for the root, "cmd" for cmd/…
	test bool   // a _test.go file or a *test package
	tool bool   // a program for maintainers, not shipped
	ast  *ast.File
	size int // lines
}

func TestArchitecture(t *testing.T) {
	sources := parseTree(t)
	height := map[string]int{}
	for i, l := range layers {
		for _, p := range l.packages {
			height[p] = i
		}
	}
	documented := map[string]int{}
	vocabulary := 0
	for _, s := range sources {
		dir := path.Dir(s.file)
		for name := range strings.SplitSeq(dir, "/") {
			if slices.Contains(bannedNames, name) {
				t.Errorf("%s: a package named %q says nothing about what is inside", s.file, name)
			}
		}
		if _, ok := height[s.pkg]; !ok && !s.tool {
			t.Errorf("%s: package %q has no layer: give it one in arch_test.go", s.file, s.pkg)
			continue
		}
		if s.test || s.tool {
			continue
		}
		if s.ast.Doc != nil {
			documented[dir]++
		} else if _, ok := documented[dir]; !ok {
			documented[dir] = 0
		}
		if s.pkg == "" {
			vocabulary += s.size
		}
		if s.size > 800 {
			t.Errorf("%s has %d lines: is it one noun?", s.file, s.size)
		}
		checkImports(t, s, height)
		if layers[height[s.pkg]].name == "cores" || s.pkg == "" {
			checkPurity(t, s)
		}
		if layers[height[s.pkg]].name == "hints" {
			checkHints(t, s)
		}
		if s.pkg != "egress" {
			checkDials(t, s)
		}
	}
	for dir, n := range documented {
		if n != 1 {
			t.Errorf("%s has %d package comments, want one, in doc.go", dir, n)
		}
	}
	if vocabulary > 800 {
		t.Errorf("the vocabulary has %d lines, the bound is 800", vocabulary)
	}
}

// checkHints holds a hint to what it can be: no import but addresses, and no answer.
func checkHints(t *testing.T, s source) {
	t.Helper()
	for _, imp := range s.ast.Imports {
		if name, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(hints, name) {
			t.Errorf("%s imports %s: a hint imports no more than %v", s.file, name, hints)
		}
	}
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && f.Type.Results != nil {
			t.Errorf("%s: %s returns something: nothing follows from a hint", s.file, f.Name)
		}
	}
}

func checkImports(t *testing.T, s source, height map[string]int) {
	t.Helper()
	for _, imp := range s.ast.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		if !strings.HasPrefix(name, "sluice") {
			first, _, _ := strings.Cut(name, "/")
			if !strings.Contains(first, ".") {
				continue // standard library
			}
			if s.pkg == "" {
				t.Errorf("%s imports %s: the vocabulary imports the standard library only", s.file, name)
			}
			if !slices.ContainsFunc(thirdParty, func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") }) {
				t.Errorf("%s imports %s, which is not on the list of dependencies in arch_test.go", s.file, name)
			}
			continue
		}
		to := packageOf(strings.TrimPrefix(strings.TrimPrefix(name, "sluice"), "/") + "/x.go")
		if to == s.pkg {
			continue
		}
		from, upon := height[s.pkg], height[to]
		if upon > from || upon == from && !layers[from].sideways {
			t.Errorf("%s (%s) imports %s (%s): imports go downward", s.file, layers[from].name, to, layers[upon].name)
		}
		if s.pkg == pureFace && to != "" && layers[upon].name != "cores" {
			t.Errorf("%s imports %s (%s): %s sees cores and the vocabulary alone", s.file, to, layers[upon].name, pureFace)
		}
		if slices.Contains(never[s.pkg], to) {
			t.Errorf("%s: %s never imports %s", s.file, s.pkg, to)
		}
		if allowed, ok := onlyFrom[to]; ok && !slices.Contains(allowed, s.pkg) {
			t.Errorf("%s: only %v may import %s", s.file, allowed, to)
		}
	}
}

func checkPurity(t *testing.T, s source) {
	t.Helper()
	for _, imp := range s.ast.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		if s.pkg == "" && name == "log/slog" {
			continue // Secret implements slog.LogValuer
		}
		if slices.Contains(impureImports, name) {
			t.Errorf("%s imports %s: a core is pure", s.file, name)
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine: a core is pure", s.file)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impureTime, n.Sel.Name) {
				t.Errorf("%s asks for time.%s: time is an argument", s.file, n.Sel.Name)
			}
		}
		return true
	})
}

func checkDials(t *testing.T, s source) {
	t.Helper()
	for _, imp := range s.ast.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		forbidden, ok := dialers[name]
		if !ok {
			continue
		}
		local := path.Base(name)
		if imp.Name != nil {
			local = imp.Name.Name
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			names := forbidden.funcs
			if lit, ok := n.(*ast.CompositeLit); ok {
				n, names = lit.Type, forbidden.literals
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
				t.Errorf("%s uses %s.%s: only egress opens connections", s.file, name, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestDependenciesAreExplained holds go.mod, the lists above and
// docs/dependencies.md together.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(mod)) {
		f := strings.Fields(line)
		if len(f) == 2 && strings.Contains(f[0], ".") && strings.HasPrefix(f[1], "v") {
			direct[f[0]] = true
		}
	}
	for _, m := range slices.Sorted(maps.Keys(direct)) {
		if !strings.Contains(string(doc), "`"+m+"`") {
			t.Errorf("docs/dependencies.md has no line for %s", m)
		}
		if !slices.Contains(thirdParty, m) && !slices.Contains(testOnly, m) {
			t.Errorf("%s is in go.mod but on neither list in arch_test.go", m)
		}
	}
	for _, m := range slices.Concat(thirdParty, testOnly) {
		if !direct[m] {
			t.Errorf("%s is on a list in arch_test.go but not required by go.mod", m)
		}
	}
}

func parseTree(t *testing.T) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "tools" || p == "test") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(p)
		dir := path.Base(path.Dir(file))
		out = append(out, source{
			file: file,
			pkg:  packageOf(file),
			test: strings.HasSuffix(file, "_test.go") || strings.HasSuffix(dir, "test"),
			tool: f.Name.Name == "main" && !strings.HasPrefix(file, "cmd/"),
			ast:  f,
			size: fset.File(f.Pos()).LineCount(),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// packageOf names the room that a file is in.
func packageOf(file string) string {
	first, rest, _ := strings.Cut(file, "/")
	switch first {
	case "internal":
		room, _, _ := strings.Cut(rest, "/")
		return room
	case "cmd":
		return "cmd"
	}
	return ""
}
