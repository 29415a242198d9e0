package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every snippet of docs/providers.md loads and compiles as it stands.
func TestProvidersPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	account, err := os.ReadFile(serviceAccount(t))
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		if name == "VERTEX_SERVICE_ACCOUNT" {
			return string(account), true
		}
		return "secret-of-" + name, true
	}
	n, rest := 0, string(page)
	for {
		_, after, ok := strings.Cut(rest, "```yaml\n")
		if !ok {
			break
		}
		snippet, left, ok := strings.Cut(after, "```")
		if !ok {
			t.Fatal("a snippet has no end")
		}
		n, rest = n+1, left
		c, err := Parse("providers.md", []byte(snippet), env)
		if err != nil {
			t.Errorf("snippet %d: %v", n, err)
			continue
		}
		if len(c.Models) == 0 { // it shows providers alone
			var backends strings.Builder
			for _, name := range sorted(c.Providers) {
				fmt.Fprintf(&backends, "{name: %s-1, provider: %s, model: m}, ", name, name)
			}
			snippet += "pools: {p: {backends: [" + backends.String() + "]}}\nmodels: {m: {pools: [p]}}\n"
			if c, err = Parse("providers.md", []byte(snippet), env); err != nil {
				t.Errorf("snippet %d, used: %v", n, err)
				continue
			}
		}
		if _, err := Compile(c, CompileOptions{}); err != nil {
			t.Errorf("snippet %d: %v", n, err)
		}
	}
	if n < 5 {
		t.Errorf("got %d snippets", n)
	}
}
