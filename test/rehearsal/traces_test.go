package rehearsal

import (
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/config"
)

// recordings are published traces, in a folder beside the repository where somebody
// has put them there, by the scenario and source whose made-up rows they take the
// place of.
var recordings = []struct {
	scenario string
	traces   map[string]string
}{
	{"code-bursts", map[string]string{"conversation": "azure_llm_2023_conv.csv", "code": "azure_llm_2023_code.csv"}},
	{"long-documents", map[string]string{"arena": "vtc_arena_27clients.csv", "documents": "mooncake_conversation.jsonl"}},
}

// A recording can be put in place of the rows that ship: the run is another, and
// whole.
func TestRecordingsInPlaceOfMadeUpTraces(t *testing.T) {
	long(t)
	const folder = "../../../shared/traces"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no recordings beside the repository")
	}
	for _, r := range recordings {
		t.Run(r.scenario, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for source, file := range r.traces {
				files[source] = filepath.Join(folder, file)
			}
			s := shipped(t, r.scenario, files)
			for i := range s.Sources {
				rows := s.Sources[i].Arrivals.Rows
				if len(rows) < 1000 || rows[0].Line == 0 {
					t.Errorf("source %s has %d rows: not a recording's", s.Sources[i].Name, len(rows))
				}
			}
			s.Name += " with recordings" // apart from the one that ships
			got := run(t, s, config.PolicySluice, 1)
			for i := range got.Phases {
				p := &got.Phases[i]
				if b := p.Books; b.Lost != 0 || b.Twice != 0 || b.Open != 0 || p.All.Requests == 0 {
					t.Errorf("phase %s: %d requests, books %+v", p.Name, p.All.Requests, b)
				}
			}
		})
	}
}
