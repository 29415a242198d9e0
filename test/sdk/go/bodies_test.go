package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
)

// TestTranslatedBodies reads every body that the transcripts make for an OpenAI backend
// into the client's own type and writes it again: what the type does not know would be
// gone.
func TestTranslatedBodies(t *testing.T) {
	files, err := filepath.Glob("../../../internal/dialect/testdata/messages-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, sent, ok := strings.Cut(string(b), "-- sent --\n")
		if !ok {
			continue // the request is refused
		}
		sent, _, _ = strings.Cut(sent, "\n")
		var params openai.ChatCompletionNewParams
		if err := json.Unmarshal([]byte(sent), &params); err != nil {
			t.Errorf("%s: %v in %s", filepath.Base(name), err, sent)
			continue
		}
		again, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := json.Unmarshal([]byte(sent), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		delete(want, "stream") // the client's methods say it
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %s\nis to the client %s", filepath.Base(name), sent, again)
		}
	}
}
