package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/route"
)

func scanGemini(t testing.TB, body string) *Head {
	t.Helper()
	h, err := ScanIn(GenerateContent, []byte(body), InPath{Model: "gemini-3-flash", Stream: true})
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	return h
}

func TestScanGemini(t *testing.T) {
	h := scanGemini(t, `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
		{"role":"user","parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"`+picture(t, "png", 640, 480)+`"}}]},
		{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"c2ln"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"42"}}}]}],
		"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}],
		"generationConfig":{"maxOutputTokens":100,"candidateCount":2,"temperature":0.5,"topP":1.0,"seed":7,"stopSequences":["END"],
		"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"thinkingLevel":"low"}},
		"serviceTier":"flex","unknown":{"Model":1}}`)
	type facts struct {
		Model, Tier, Param     string
		Stream, Has, Open      bool
		Max                    sluice.Tokens
		Choices                int64
		Messages, Tools, Media int
		Needs                  route.Needs
	}
	want := facts{
		"gemini-3-flash", "flex", "generationConfig.maxOutputTokens", true, true, false, 100, 2, 3, 2, 1,
		route.NeedStream | route.NeedTools | route.NeedImage | route.NeedJSONSchema | route.NeedReasoning | route.NeedChoices |
			route.NeedTemperature | route.NeedSeed | route.NeedStop,
	}
	got := facts{h.Model, h.ServiceTier, h.MaxParam, h.Stream, h.HasMaxOutput, h.Unbounded, h.MaxOutput, h.Choices, h.Messages, h.Tools, h.Media, h.Needs}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if h.Estimate <= 0 || h.Bound < h.Estimate {
		t.Errorf("got estimate %d, bound %d", h.Estimate, h.Bound)
	}
}

// What the API takes in two spellings is metered in both, and refused where it stands
// in two.
func TestGeminiSpellings(t *testing.T) {
	camel := `{"contents":[{"parts":[{"text":"x"},{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/y"}}]}],"systemInstruction":{"parts":[{"text":"s"}]},
		"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}],"generationConfig":{"maxOutputTokens":9,"candidateCount":3}}`
	snaked := camel
	for _, f := range []string{"fileData", "mimeType", "fileUri", "systemInstruction", "functionDeclarations", "googleSearch", "generationConfig", "maxOutputTokens", "candidateCount"} {
		snaked = strings.ReplaceAll(snaked, f, snake(f))
	}
	a, b := scanGemini(t, camel), scanGemini(t, snaked)
	if a.MaxOutput != 9 || a.Choices != 3 || a.ServerTools != 1 || !a.Unbounded || a.Media != 1 {
		t.Errorf("got %+v", a)
	}
	if a.MaxOutput != b.MaxOutput || a.Choices != b.Choices || a.Needs != b.Needs || a.Tools != b.Tools || a.Media != b.Media || a.Messages != b.Messages || a.Unbounded != b.Unbounded {
		t.Errorf("in snake case it is %+v, not %+v", b, a)
	}
	const said = `"contents":[{"parts":[{"text":"x"}]}]`
	for name, body := range map[string]string{
		"both":             `{` + said + `,"generationConfig":{"maxOutputTokens":1},"generation_config":{"maxOutputTokens":9000}}`,
		"both, one null":   `{` + said + `,"generationConfig":null,"generation_config":{"maxOutputTokens":9000}}`,
		"both, within":     `{` + said + `,"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9000}}`,
		"another case":     `{` + said + `,"GenerationConfig":{"maxOutputTokens":1}}`,
		"more underscores": `{` + said + `,"generation__config":{"maxOutputTokens":1}}`,
		"twice":            `{` + said + `,"generationConfig":{},"generationConfig":{}}`,
		"escaped":          `{` + said + `,"generationConfig":{},"generation\u0043onfig":{}}`,
		"another model":    `{` + said + `,"model":"models/gemini-dear"}`,
		"a bound as text":  `{` + said + `,"generationConfig":{"maxOutputTokens":"100"}}`,
		"a bound of none":  `{` + said + `,"generationConfig":{"maxOutputTokens":0}}`,
		"a bound as float": `{` + said + `,"generationConfig":{"maxOutputTokens":1e2}}`,
		"no object":        `[]`,
		"contents of text": `{"contents":"x"}`,
		"functions twice":  `{` + said + `,"tools":[{"functionDeclarations":[],"function_declarations":[]}]}`,
	} {
		if h, err := ScanIn(GenerateContent, []byte(body), InPath{Model: "gemini-3-flash"}); err == nil {
			t.Errorf("%s passes: %+v", name, h)
		} else if sluice.AsError(err).Kind != sluice.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGeminiSplice(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"lowered", `{"contents":[],"generationConfig":{"maxOutputTokens": 100}}`, `{"contents":[],"generationConfig":{"maxOutputTokens": 9}}`},
		{"in snake case", `{"generation_config":{"max_output_tokens":100},"contents":[]}`, `{"generation_config":{"max_output_tokens":9},"contents":[]}`},
		{"kept", `{"generationConfig":{"maxOutputTokens":5}}`, `{"generationConfig":{"maxOutputTokens":5}}`},
		{"for null", `{"generationConfig":{"maxOutputTokens":null}}`, `{"generationConfig":{"maxOutputTokens":9}}`},
		{"into a configuration", `{"generationConfig":{"topK":1}}`, `{"generationConfig":{"maxOutputTokens":9,"topK":1}}`},
		{"into an empty one", `{"generationConfig":{ }}`, `{"generationConfig":{"maxOutputTokens":9 }}`},
		{"for a null one", `{"generationConfig": null }`, `{"generationConfig": {"maxOutputTokens":9} }`},
		{"with a configuration", ` { "contents":[] }`, ` {"generationConfig":{"maxOutputTokens":9}, "contents":[] }`},
		{"into nothing", `{}`, `{"generationConfig":{"maxOutputTokens":9}}`},
		{"beside a model", `{"model":"models/gemini-3-flash","contents":[]}`, `{"generationConfig":{"maxOutputTokens":9},"model":"models/other","contents":[]}`},
	} {
		h := scanGemini(t, tt.in)
		e := Edit{Model: "other", MaxOutput: 9}
		got := string(h.Splice([]byte(tt.in), e))
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if changed := h.Changed(e); (changed == "") != (tt.name == "kept") || changed != "" && changed != "generationConfig.maxOutputTokens=9" {
			t.Errorf("%s: told as %q", tt.name, changed)
		}
		if _, err := ScanIn(GenerateContent, []byte(got), InPath{Model: "other"}); err != nil && tt.name != "kept" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// FuzzGemini: what is accepted is metered alike in either spelling, and stays so when
// its bound is set.
func FuzzGemini(f *testing.F) {
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":10}}`))
	f.Add([]byte(`{"contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"AAAA"}}]}],"tools":[{"googleSearch":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := ScanIn(GenerateContent, body, InPath{Model: "m", Stream: true})
		if err != nil {
			return
		}
		out := h.Splice(body, Edit{MaxOutput: 5})
		again, err := ScanIn(GenerateContent, out, InPath{Model: "m", Stream: true})
		if err != nil {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
		if again.MaxOutput == 0 || again.MaxOutput > max(5, h.MaxOutput) || again.Needs != h.Needs || again.Tools != h.Tools {
			t.Fatalf("%s became %s: %+v", body, out, again)
		}
	})
}
