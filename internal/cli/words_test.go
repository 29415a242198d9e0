package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// verbs are what a message that stands after its field's name may begin with, or
// with the value, quoted.
var verbs = map[string]bool{
	"is": true, "has": true, "must": true, "names": true, "asks": true, "needs": true, "counts": true, "lies": true, "steers": true,
	"and": true, "key": true, "value": true, "%q": true, "%s,": true, "takes": true, "contains": true, "comes": true, "does": true, "stands": true,
}

// TestMessagesReadAfterTheirField looks at every error that names a field: it is
// shown as FIELD MESSAGE, so that the message goes on from there.
func TestMessagesReadAfterTheirField(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".cache") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return nil // it is being written
		}
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := afterField(n)
			if !ok {
				return true
			}
			found++
			if first, _, _ := strings.Cut(text, " "); !verbs[first] {
				t.Errorf("%s: %q does not read after the name of its field", fset.Position(n.Pos()), text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("found %d messages: the test does not see them any more", found)
	}
}

// afterField is the message of sluice.Invalid with a field, and of an Error
// literal with a Param, as far as it is written there.
func afterField(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			name = f.Sel.Name
		case *ast.Ident:
			name = f.Name
		}
		if name != "Invalid" || len(n.Args) < 2 {
			return "", false
		}
		if field, ok := n.Args[0].(*ast.BasicLit); ok && field.Value == `""` {
			return "", false
		}
		return leading(n.Args[1])
	case *ast.CompositeLit:
		var param bool
		var msg ast.Expr
		for _, e := range n.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if key, ok := kv.Key.(*ast.Ident); ok {
				param = param || key.Name == "Param"
				if key.Name == "Msg" {
					msg = kv.Value
				}
			}
		}
		if !param || msg == nil {
			return "", false
		}
		return leading(msg)
	}
	return "", false
}

// leading is the text that an expression begins with, if it is written out.
func leading(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && s != "%s" // what a helper passes on
	case *ast.BinaryExpr:
		return leading(e.X)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return leading(e.Args[0])
		}
	}
	return "", false
}
