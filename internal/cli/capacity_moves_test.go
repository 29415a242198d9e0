package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const crowded = `
gpus: 8
models:
  - {name: a, profile: llama-3.1-8b-1xh100, demand: [{tenant: t, rps: 15, input: 800, output: 200}]}
  - {name: b, profile: llama-3.1-8b-1xh100, weight: 3, start: 1m, demand: [{tenant: t, rps: 400, input: 800, output: 200}]}
moves: {most: 2}
current:
  - {backend: a-1, model: a}
  - {backend: a-2, model: a}
  - {backend: a-3, model: a}
  - {backend: a-4, model: a}
  - {backend: a-5, model: a}
  - {backend: b-1, model: b}
`

// What is printed is what is to be done, in its order; the exit code says whether
// there is anything.
func TestAllocateMoves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	say := func(text string, args ...string) (int, string, string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		code := Run(t.Context(), Env{Args: append([]string{"capacity", "allocate", file}, args...), Stdout: &out, Stderr: &talk, Getenv: os.LookupEnv})
		return code, out.String(), talk.String()
	}
	code, out, talk := say(crowded, "--commands", "--check")
	if code != exitFailed || !strings.Contains(talk, "of the demand is served; 4 moves to be made, which --commands prints") {
		t.Errorf("exit code %d, %s", code, talk)
	}
	var drained []string
	for line := range strings.Lines(out) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "sluice backend drain "); is {
			drained = append(drained, name)
		} else if !strings.HasPrefix(line, "# ") {
			t.Errorf("%q is neither a command nor a remark", line)
		}
	}
	if strings.Join(drained, " ") != "a-5 a-4" || !strings.Contains(out, "serves in 1m0s") {
		t.Errorf("drains %q:\n%s", drained, out)
	}
	if code, out, _ := say(crowded); code != exitOK || !strings.Contains(out, "Not moved: 2 more replicas of b: more backends would be drained than may be.") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out, _ := say(crowded, "-o", "json"); code != exitOK || !strings.Contains(out, `"pays_in_seconds"`) || !strings.Contains(out, `"drain_within_seconds"`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	still := strings.ReplaceAll(crowded, "rps: 400", "rps: 10")
	if code, out, talk := say(still, "--check"); code != exitOK || !strings.Contains(out, "Nothing to move.") {
		t.Errorf("where all is served: exit code %d, %s\n%s", code, talk, out)
	}
	bare, _, _ := strings.Cut(crowded, "moves:")
	if code, _, talk := say(bare, "--commands"); code != exitUsage || !strings.Contains(talk, "does not say what runs") {
		t.Errorf("of a file without current: exit code %d, %s", code, talk)
	}
	if code, _, talk := say(strings.ReplaceAll(crowded, "b-1, model: b}", "b-1, model: c}")); code != exitUsage || !strings.Contains(talk, "current[5].model") {
		t.Errorf("of an unknown model: exit code %d, %s", code, talk)
	}
}

// Names become part of commands, and figures that plan nothing are told: each with its line
// and what to write in its place.
func TestAllocateRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	for _, c := range []struct{ old, with, want string }{
		{"backend: a-1,", `backend: "c1; touch /tmp/x #",`, "current[0].backend"},
		{"backend: a-1,", `backend: "c1\ntouch x",`, "current[0].backend"},
		{"backend: a-1,", `backend: "",`, "current[0].backend"},
		{"backend: a-2,", "backend: a-1,", `"a-1" is listed twice`},
		{"backend: a-1, model: a", "backend: a-1, model: z", "current[0].model"},
		{"most: 2", "most: 0", "moves.most"},
		{"most: 2", "horizon: 0s", "moves.horizon"},
		{"profile: llama-3.1-8b-1xh100, ", "", ".profile: is missing"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(crowded, c.old, c.with, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		code := Run(t.Context(), Env{Args: []string{"capacity", "allocate", file, "--commands"}, Stdout: &out, Stderr: &talk, Getenv: os.LookupEnv})
		if code == exitOK || out.Len() > 0 || !strings.Contains(talk.String(), c.want) || !strings.Contains(talk.String(), "fleet.yaml:") || !strings.Contains(talk.String(), "fix:") {
			t.Errorf("%s: exit code %d\n%s%s", c.with, code, out.String(), talk.String())
		}
	}
}

// What a flag may be is told by its name.
func TestLadderFlags(t *testing.T) {
	for _, args := range [][]string{
		{"ladder", "pin", "p", "shed", "--reason", "r", "--for", "25h"},
		{"ladder", "pin", "p", "shed", "--reason", "r", "--for", "0s"},
		{"ladder", "preview", "p", "shed", "--last", "0s"},
		{"ladder", "preview", "p", "shed", "--last", "31m"},
	} {
		var out, talk bytes.Buffer
		code := Run(t.Context(), Env{Args: args, Stdout: &out, Stderr: &talk, Getenv: os.LookupEnv})
		if flag := args[len(args)-2]; code != exitUsage || !strings.Contains(talk.String(), flag+": ") || !strings.Contains(talk.String(), "write a time from 1s to ") {
			t.Errorf("%q: exit code %d\n%s", args, code, talk.String())
		}
	}
}
