package dialect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/dialects.md"

// The tables of docs/dialects.md are what the translation goes by; -update rewrites
// them.
func TestPageIsCurrent(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{"stops": stopsTable()}
	for _, c := range codecs {
		tables["to "+c.op.String()] = backendTable(c)
		if c.parseRequest != nil {
			tables["from "+c.op.String()] = clientTable(c)
		}
	}
	var out strings.Builder
	rest, found := string(b), 0
	for {
		before, after, ok := strings.Cut(rest, "<!-- generated: ")
		out.WriteString(before)
		if !ok {
			break
		}
		name, body, _ := strings.Cut(after, " -->\n")
		_, rest, ok = strings.Cut(body, "<!-- end -->")
		if !ok || tables[name] == "" {
			t.Fatalf("there is no table %q, or it has no end", name)
		}
		fmt.Fprintf(&out, "<!-- generated: %s -->\n%s<!-- end -->", name, tables[name])
		found++
	}
	if found != len(tables) {
		t.Errorf("the page has %d tables, want %d", found, len(tables))
	}
	if *update {
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(out.String(), string(b)); d != "" {
		t.Errorf("%s is stale, rewrite with -update:\n%s", page, d)
	}
}

// clientTable is what the clients of a codec can ask for, and what becomes of it at
// the backends of every other.
func clientTable(from *codec) string {
	var b strings.Builder
	head := []string{"what", "in the request"}
	for _, to := range codecs {
		if to != from {
			head = append(head, to.title)
		}
	}
	fmt.Fprintf(&b, "| %s |\n%s\n", strings.Join(head, " | "), strings.Repeat("|---", len(head))+"|")
	for _, f := range from.fields {
		fmt.Fprintf(&b, "| %s | %s |", f.feature, f.name)
		for _, to := range codecs {
			if to != from {
				fmt.Fprintf(&b, " %s |", to.carriage(from, f.feature).fate)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// backendTable is what becomes of what the clients of every other codec ask for.
func backendTable(to *codec) string {
	var b strings.Builder
	b.WriteString("| what | fate | how, or why not | instead |\n|---|---|---|---|\n")
	told := map[Feature]bool{}
	for _, from := range codecs {
		for _, f := range from.fields {
			if from == to || told[f.feature] {
				continue
			}
			told[f.feature] = true
			c := to.carriage(from, f.feature)
			fix := c.fix
			if c.fate == Kept {
				fix = ""
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.feature, c.fate, c.why, fix)
		}
	}
	return b.String()
}

func stopsTable() string {
	var b strings.Builder
	b.WriteString("| stop reason of messages | finish reason of chat | words of other servers |\n|---|---|---|\n")
	for _, s := range anthropicStops {
		var others []string
		for _, o := range openaiStops {
			if o.reason == s.reason && o.word != openaiFinish(s.reason) {
				others = append(others, "`"+o.word+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.word, openaiFinish(s.reason), strings.Join(others, ", "))
	}
	return b.String()
}

// Every dialect says something of each feature that another has too, and of what is
// its own what becomes of it elsewhere, so that no table has a hole; and of a loss why
// and what to do instead.
func TestTablesAreWhole(t *testing.T) {
	for _, from := range codecs {
		for _, to := range codecs {
			for _, f := range from.fields {
				if from == to {
					continue
				}
				_, said := to.carries[f.feature]
				_, own := from.elsewhere[f.feature]
				_, everywhere := foreign[f.feature]
				c := to.carriage(from, f.feature)
				if !said && !own && !everywhere || c.fate != Kept && (c.why == "" || c.fix == "") {
					t.Errorf("%s by %s: %s has no whole row", from.op, to.op, f.feature)
				}
			}
		}
	}
	for _, r := range []StopReason{StopEnd, StopLength, StopContext, StopSequence, StopTools, StopRefusal} {
		if openaiStop(openaiFinish(r)) == StopUnknown || anthropicStop(anthropicWord(r)) != r {
			t.Errorf("reason %d has no word", r)
		}
	}
}
