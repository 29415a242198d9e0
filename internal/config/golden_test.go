package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice"
	"sluice/internal/auth"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Two keys that are the same in every run, and one with a typing error.
const (
	keyA    = "slk_test_0123456789_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_"
	keyB    = "slk_test_zyxwvtsrqp_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB_"
	provKey = "sk-canary-0123456789"
)

// testEnv has the variables that the files of testdata and examples use.
func testEnv(name string) (string, bool) {
	switch name {
	case "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY":
		return provKey, true
	case "KEY_A", "ACME_KEY":
		return keyA + "0fE55R", true
	case "KEY_B":
		return keyB + "0MtAdS", true
	case "KEY_TYPO":
		return strings.Replace(keyA, "A_", "B_", 1) + "0fE55R", true
	}
	return "", false
}

// golden runs fn over sluice.yaml of every archive of a folder and compares
// with its file want.
func golden(t *testing.T, folder string, fn func(t *testing.T, data []byte) string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil || len(a.Files) != 2 || a.Files[1].Name != "want" {
				t.Fatalf("%s needs the files sluice.yaml and want: %v", file, err)
			}
			got := fn(t, a.Files[0].Data)
			if *update {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got, rewrite with -update:\n%s", diff)
			}
		})
	}
}

// Each mistake gets file, line, column, path, cause and fix; no message shows a
// credential.
func TestMistakes(t *testing.T) {
	golden(t, "mistakes", func(t *testing.T, data []byte) string {
		_, err := Parse("sluice.yaml", data, testEnv)
		problems, ok := err.(Problems)
		if !ok || len(problems) == 0 {
			t.Fatalf("got %v, want problems", err)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || p.Cause == "" || p.Fix == "" {
				t.Errorf("incomplete: %+v", p)
			}
			lines := strings.Split(string(data), "\n")
			if p.Line > len(lines) || p.Col > len([]rune(lines[p.Line-1]))+1 {
				t.Errorf("%v is not in the file", p)
			}
		}
		refuseCanaries(t, err.Error())
		return err.Error() + "\n"
	})
}

func TestLint(t *testing.T) {
	golden(t, "lint", func(t *testing.T, data []byte) string {
		c, err := Parse("sluice.yaml", data, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		text := c.Lint().Error()
		refuseCanaries(t, text)
		return text + "\n"
	})
}

func refuseCanaries(t *testing.T, text string) {
	t.Helper()
	for _, canary := range []string{provKey, "AAAAAAAA", "BBBBBBBB", "sk-live-0123456789", "sk-1234567890abcdef", "hunter2"} {
		if strings.Contains(text, canary) {
			t.Errorf("a credential shows:\n%s", text)
		}
	}
}

func TestFixedKeysAreWhole(t *testing.T) {
	for _, name := range []string{"KEY_A", "KEY_B"} {
		v, _ := testEnv(name)
		if _, err := auth.Parse(v); err != nil {
			t.Errorf("%s: %v", name, sluice.AsError(err).Msg)
		}
	}
}
