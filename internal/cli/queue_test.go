package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sluice/internal/admin"
)

// overload is the picture that docs/operations/queue.md explains.
func overload() []admin.PoolStatus {
	served := func(rate int64, share, fair float64) admin.Served {
		return admin.Served{Rate: rate, Share: share, FairShare: fair}
	}
	return []admin.PoolStatus{{
		Pool: "chat", Waiting: 222, OldestSeconds: 9.2,
		Classes: []admin.ClassStatus{
			{Class: "interactive", Waiting: 3, Running: 6, OldestSeconds: 0.41, Served: served(5100, .39, .6), Gap: 310},
			{Class: "standard", Waiting: 207, Running: 9, OldestSeconds: 9.2, Served: served(6900, .53, .3), Gap: 4210, RefusedPerMinute: 1840, Refused: map[string]int64{"queue_full": 5120, "deadline_unmet": 77}},
			{Class: "batch", Waiting: 12, Running: 1, OldestSeconds: 6.8, Served: served(1050, .08, .1)},
		},
		Flows: []admin.FlowStatus{
			{Tenant: "scraper", Class: "standard", Marks: []string{admin.Noisy}, Waiting: 204, Running: 5, OldestSeconds: 9.2, Served: served(3500, .27, .15), Lead: 0, RefusedPerMinute: 1840, Refused: map[string]int64{"queue_full": 5120}},
			{Tenant: "agents", Class: "batch", Marks: []string{admin.OwnLimit}, Waiting: 12, Running: 1, OldestSeconds: 6.8, Served: served(1050, .08, .1)},
			{Tenant: "search", Class: "standard", Marks: []string{admin.Contracted}, Waiting: 3, Running: 4, OldestSeconds: 0.3, Served: served(3400, .26, .15), Lead: 4210, Refused: map[string]int64{"deadline_unmet": 77}},
			{Tenant: "app", Class: "interactive", Waiting: 3, Running: 6, OldestSeconds: 0.41, Served: served(5100, .39, .6), Lead: 0},
		},
		Contracts: []admin.ContractStatus{{
			Tenant: "search", Reserve: admin.Capacity{Slots: 4, KV: 40000}, Used: admin.Capacity{Slots: 4, KV: 21500}, Inside: 4, Waiting: 3, State: "kept",
		}},
		Gathering: &admin.Gathering{Request: "req_01a228a6-79e9-7843-8fc5-91d9bba3fece", Tenant: "agents", Class: "batch", Backend: "gpu-a", Passed: 31000, Allowance: 32200},
	}}
}

// TestQueuePage holds docs/operations/queue.md to the program: its picture is what
// the tables make of it, its sentences of what is in the way are the program's, and
// each of its commands is run by a script.
func TestQueuePage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations/queue.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	var b strings.Builder
	if err := queueText(&b, overload(), false); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(b.String()); !strings.Contains(trimmed(page), trimmed(want)) {
		t.Errorf("the page does not show\n%s", want)
	}
	script, err := os.ReadFile("../../testdata/script/queue.txtar")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	commands := 0
	for _, m := range blocks {
		for line := range strings.Lines(m[1]) {
			command := strings.TrimSpace(line)
			commands++
			if !strings.Contains(string(script), " "+command+"\n") {
				t.Errorf("no script runs %q", command)
			}
		}
	}
	if commands < 6 {
		t.Errorf("the page has %d commands", commands)
	}
}

// trimmed is a text without the blanks at the ends of its lines.
func trimmed(s string) string { return regexp.MustCompile(` +\n`).ReplaceAllString(s, "\n") }
