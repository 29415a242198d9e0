package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/estimate"
	"sluice/internal/route"
)

func mustScan(t testing.TB, op Operation, body string) *Head {
	t.Helper()
	h, err := Scan(op, []byte(body))
	if err != nil {
		t.Fatalf("Scan(%s, %.200s): %v", op, body, err)
	}
	return h
}

func TestScanChat(t *testing.T) {
	h := mustScan(t, Chat, `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"},
		{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
		{"role":"tool","tool_call_id":"a","content":"42"}],
		"model":"gp\u0074-4o","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"n":2,"user":"u1","safety_identifier":"s1",
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"parallel_tool_calls":false,
		"response_format":{"type":"json_schema","json_schema":{"name":"x"}},"reasoning_effort":"low","logprobs":true,"service_tier":"flex","unknown":{"Model":1}}`)
	got := *h
	type facts struct {
		Model, User, Tier, Param           string
		Stream, Usage, Has, Parallel, Open bool
		Max                                sluice.Tokens
		Choices                            int64
		Messages, Tools, Media             int
		Needs                              route.Needs
	}
	want := facts{"gpt-4o", "s1", "flex", "max_completion_tokens", true, true, true, false, false, 100, 2, 4, 1, 1, route.NeedStream | route.NeedTools | route.NeedImage | route.NeedJSONSchema | route.NeedReasoning | route.NeedLogprobs | route.NeedChoices | route.NeedMediaURL}
	if diff := cmp.Diff(facts{got.Model, got.User, got.ServiceTier, got.MaxParam, got.Stream, got.IncludeUsage, got.HasMaxOutput, got.ParallelTools, got.Unbounded, got.MaxOutput, got.Choices, got.Messages, got.Tools, got.Media, got.Needs}, want); diff != "" {
		t.Error(diff)
	}
	if h.Estimate <= 0 || h.Bound < h.Estimate {
		t.Errorf("got estimate %d, bound %d", h.Estimate, h.Bound)
	}
	if got, want := strings.Join(h.Needs.Names(), " "), "stream image tools json_schema reasoning logprobs n media_url"; got != want {
		t.Errorf("got needs %q, want %q", got, want)
	}
}

func TestScanMessages(t *testing.T) {
	h := mustScan(t, Messages, `{"model":"claude-sonnet-4-5","max_tokens":1024,"system":[{"type":"text","text":"You are"}],"metadata":{"user_id":"abc"},
		"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"`+strings.Repeat("A", 4000)+`"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"ok"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]}],
		"thinking":{"type":"enabled","budget_tokens":2048},"tool_choice":{"type":"auto","disable_parallel_tool_use":true},
		"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]}`)
	if h.User != "abc" || h.MaxOutput != 1024 || h.Messages != 3 || h.Media != 1 || h.Tools != 2 || h.ServerTools != 1 || !h.Unbounded || h.ParallelTools {
		t.Errorf("got %+v", h)
	}
	if want := route.NeedTools | route.NeedServerTools | route.NeedImage | route.NeedReasoning | route.NeedMediaURL; h.Needs != want {
		t.Errorf("got needs %v, want %v", h.Needs.Names(), want.Names())
	}
	if h.Estimate > 3000 {
		t.Errorf("got estimate %d: a signature is not text", h.Estimate)
	}
	if h.Bound < 4000 {
		t.Errorf("got bound %d: it must count every byte", h.Bound)
	}
}

// How often a provider runs tools of its own is bounded where all of them are.
func TestServerTools(t *testing.T) {
	for _, tt := range []struct {
		tools                 string
		count, uses, searches int64
		op                    Operation
	}{
		{`"tools":[{"name":"f"}]`, 0, 0, 0, Messages},
		{`"tools":[{"type":"bash_20250124","name":"bash"}]`, 0, 0, 0, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":3}]`, 1, 3, 3, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":3},{"max_uses":2,"type":"web_fetch_20250910"}]`, 2, 5, 3, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":99999999999999999999}]`, 1, maxUses, maxUses, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":3},{"type":"code_execution_20250825"}]`, 2, -1, 3, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":"3"}]`, 1, -1, 0, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":null}]`, 1, -1, 0, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":-3}]`, 1, -1, 0, Messages},
		{`"tools":[{"type":"web_search_20250305","max_uses":1e3}]`, 1, -1, 0, Messages},
		{`"mcp_servers":[{"url":"https://x"}]`, 1, -1, 0, Messages},
		{`"web_search_options":{}`, 1, -1, 0, Chat},
	} {
		h := mustScan(t, tt.op, `{"model":"m","max_tokens":5,`+tt.tools+`}`)
		if int64(h.ServerTools) != tt.count || h.ServerUses != tt.uses || h.Searches != tt.searches {
			t.Errorf("%s: got %d tools, %d uses, %d searches", tt.tools, h.ServerTools, h.ServerUses, h.Searches)
		}
	}
}

func TestScanInputs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		op      Operation
		body    string
		choices int64
		inputs  int
		exact   bool
		want    sluice.Tokens // of Estimate, -1 for any
		bound   sluice.Tokens // -1 for any
	}{
		{"text", Completions, `{"model":"m","prompt":"hello there"}`, 1, 1, false, estimate.Text([]byte("hello there")), -1},
		{"texts", Completions, `{"model":"m","prompt":["a b","c d"],"n":2,"best_of":3}`, 6, 2, false, -1, -1},
		{"ids", Completions, `{"model":"m","prompt":[1,2,3],"n":2}`, 2, 1, true, 3, 3},
		{"arrays of ids", Embeddings, `{"model":"m","input":[[1,2,3],[4,5]]}`, 0, 2, true, 5, 5},
		{"input text", Embeddings, `{"model":"m","input":"x"}`, 0, 1, false, 1, -1},
		{"absent", Completions, `{"model":"m"}`, 1, 0, false, 0, -1},
		{"null", Completions, `{"model":"m","prompt":null}`, 1, 0, false, 0, -1},
		{"empty", Completions, `{"model":"m","prompt":[]}`, 1, 0, false, 0, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := mustScan(t, tt.op, tt.body)
			if h.Choices != tt.choices || h.Messages != tt.inputs || h.Exact != tt.exact {
				t.Errorf("got choices %d inputs %d exact %v, want %d %d %v", h.Choices, h.Messages, h.Exact, tt.choices, tt.inputs, tt.exact)
			}
			if tt.want >= 0 && h.Estimate != tt.want {
				t.Errorf("got estimate %d, want %d", h.Estimate, tt.want)
			}
			if tt.bound >= 0 && h.Bound != tt.bound {
				t.Errorf("got bound %d, want %d", h.Bound, tt.bound)
			}
		})
	}
}

// C10: what two parsers may read differently, or what costs more than its bytes.
func TestScanRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	var wide strings.Builder
	for i := range 20 {
		wide.WriteString(`"k` + strconv.Itoa(i%19) + `":0,`)
	}
	for _, tt := range []struct {
		name, body, want string
		op               Operation
	}{
		{"empty", ``, "input ends", Chat},
		{"not an object", `[]`, "object", Chat},
		{"trailing", `{"model":"m"} x`, "more follows", Chat},
		{"trailing comma", `{"model":"m",}`, "a key", Chat},
		{"depth", `{"model":"m","x":` + deep + `}`, "nesting", Chat},
		{"unclosed depth bomb", strings.Repeat(`{"a":[`, 100000), "nesting", Chat},
		{"duplicate", `{"model":"a","model":"b"}`, "twice", Chat},
		{"duplicate escaped", `{"model":"a","mod\u0065l":"b"}`, "twice", Chat},
		{"duplicate nested", `{"model":"a","x":[{"y":1,"z":2,"y":3}]}`, "twice", Chat},
		{"duplicate of many", `{"model":"a","x":{` + wide.String() + `"z":0}}`, "twice", Chat},
		{"case", `{"model":"a","Model":"b"}`, "case", Chat},
		{"case alone", `{"model":"a","MAX_TOKENS":5}`, "case", Chat},
		{"long s", `{"model":"a","ſtream":true}`, "case", Chat},
		{"kelvin", `{"model":"a","max_toKens":1}`, "case", Chat},
		{"case of another operation", `{"model":"a","Best_Of":5}`, "case", Chat},
		{"case inside", `{"model":"a","stream_options":{"Include_usage":true}}`, "case", Chat},
		{"no output", `{"model":"m","max_tokens":0}`, "max_tokens must be at least 1", Chat},
		{"no completion", `{"model":"m","max_completion_tokens":0}`, "max_completion_tokens must be at least 1", Chat},
		{"no output beside some", `{"model":"m","max_tokens":0,"max_completion_tokens":50}`, "max_tokens must be at least 1", Chat},
		{"nothing to score", `{"model":"m","max_tokens":0}`, "at least 1", Completions},
		{"no echo to score", `{"model":"m","max_tokens":0,"echo":false}`, "at least 1", Completions},
		{"bound of llama.cpp", `{"model":"m","max_tokens":5,"N_predict":-1}`, "case-sensitive", Chat},
		{"huge bound", `{"model":"m","max_tokens":1e400}`, "out of range", Chat},
		{"huge number anywhere", `{"model":"m","x":[-1E+400]}`, "out of range", Chat},
		{"exponent", `{"model":"m","max_tokens":1e3}`, "whole number", Chat},
		{"fraction", `{"model":"m","max_tokens":1.5}`, "whole number", Chat},
		{"negative", `{"model":"m","max_tokens":-1}`, "negative", Chat},
		{"text number", `{"model":"m","max_tokens":"5"}`, "whole number", Chat},
		{"zero choices", `{"model":"m","n":0}`, "4096", Chat},
		{"many choices", `{"model":"m","n":99999999999999999999}`, "4096", Chat},
		{"lone high surrogate", `{"model":"m","x":"\ud83d"}`, "surrogate", Chat},
		{"lone low surrogate", `{"model":"m","x":"\ude00"}`, "surrogate", Chat},
		{"two high surrogates", `{"model":"m","x":"\ud83d\ud83d"}`, "surrogate", Chat},
		{"surrogate in a key", `{"model":"m","\ud83d":1}`, "surrogate", Chat},
		{"bad UTF-8", "{\"model\":\"m\",\"x\":\"\xff\"}", "UTF-8", Chat},
		{"surrogate in UTF-8", "{\"model\":\"m\",\"x\":\"\xed\xa0\x80\"}", "UTF-8", Chat},
		{"control", "{\"model\":\"m\",\"x\":\"a\nb\"}", "control", Chat},
		{"bad escape", `{"model":"m","x":"\x"}`, "escape", Chat},
		{"bad number", `{"model":"m","x":01}`, "comma", Chat},
		{"bad number sign", `{"model":"m","x":+1}`, "value", Chat},
		{"bad fraction", `{"model":"m","x":1.}`, "digit", Chat},
		{"NaN", `{"model":"m","x":NaN}`, "value", Chat},
		{"byte order mark", "\ufeff{\"model\":\"m\"}", "object", Chat},
		{"no model", `{"messages":[]}`, "required", Chat},
		{"null model", `{"model":null}`, "required", Chat},
		{"model number", `{"model":1}`, "string", Chat},
		{"long model", `{"model":"` + strings.Repeat("m", 300) + `"}`, "longer", Chat},
		{"stream text", `{"model":"m","stream":"true"}`, "true or false", Chat},
		{"stream options", `{"model":"m","stream_options":[]}`, "object", Chat},
		{"messages", `{"model":"m","messages":{}}`, "array", Chat},
		{"message", `{"model":"m","messages":["x"]}`, "objects", Chat},
		{"no bound", `{"model":"m","messages":[]}`, "required", Messages},
		{"mixed ids", `{"model":"m","input":[[1,"a"]]}`, "token ids", Embeddings},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Scan(tt.op, []byte(tt.body))
			e, ok := errors.AsType[*sluice.Error](err)
			if !ok || e.Kind != sluice.KindInvalid || !strings.Contains(e.Error(), tt.want) {
				t.Fatalf("got %+v, %v, want an invalid request with %q", h, err, tt.want)
			}
		})
	}
}

func TestScanAccepts(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","messages":[],"max_tokens":null,"n":null,"stream":null,"stream_options":null,"tools":null,"user":null}`,
		"\r\n {\"model\" :\t\"m\" , \"x\" : [ ] , \"y\" : { } } \n",
		`{"model":"m","x":[1e308,-0,0.5e-400,"\ud83d\ude00\/\b"],"": {"a":1,"A":2}}`,
		`{"model":"m","max_tokens":99999999999999999999999999}`,
		`{"model":"m","temperature":0.7,"logit_bias":{"50256":-100}}`,
	} {
		if h := mustScan(t, Chat, body); h.Model != "m" {
			t.Errorf("got model %q", h.Model)
		}
	}
	if h := mustScan(t, Chat, `{"model":"m","max_tokens":99999999999999999999999999}`); h.MaxOutput != maxOutputAsked {
		t.Errorf("got %d", h.MaxOutput)
	}
	if h := mustScan(t, Completions, `{"model":"m","max_tokens":0,"echo":true}`); !h.HasMaxOutput || h.MaxOutput != 0 {
		t.Errorf("got %d %v", h.MaxOutput, h.HasMaxOutput)
	}
	for _, body := range []string{`{"model":"m","max_tokens":null}`, `{"model":"m","max_completion_tokens":null,"max_tokens":null}`} {
		if h := mustScan(t, Chat, body); h.HasMaxOutput || h.MaxOutput != 0 || h.MaxParam != "max_completion_tokens" {
			t.Errorf("%s: got %d %v %s: null names no bound", body, h.MaxOutput, h.HasMaxOutput, h.MaxParam)
		}
	}
	if h := mustScan(t, Chat, `{"model":"m","n_predict":-1,"max_new_tokens":9}`); len(h.Privileged) != 2 {
		t.Errorf("got %q: other names of the bound steer the engine", h.Privileged)
	}
	if h := mustScan(t, Messages, `{"model":"m","max_tokens":0}`); !h.HasMaxOutput || h.MaxOutput != 0 {
		t.Errorf("got %+v: zero fills the cache only", h)
	}
	if h := mustScan(t, Chat, `{"model":"m","priority":1,"chat_template":"x","cache_salt":null}`); strings.Join(h.Privileged, " ") != "priority chat_template" {
		t.Errorf("got %q", h.Privileged)
	}
	long := strings.Repeat("u", 160)
	a, b := mustScan(t, Chat, `{"model":"m","user":"`+long+`1"}`), mustScan(t, Chat, `{"model":"m","user":"`+long+`2"}`)
	if a.User == b.User || len(a.User) > sluice.MaxLabel {
		t.Errorf("got %q and %q", a.User, b.User)
	}
	if h := mustScan(t, Chat, `{"model":"m","user":"a\u0000b"}`); !strings.HasPrefix(h.User, "sha256:") {
		t.Errorf("got %q", h.User)
	}
}

// pictures are images of a known size as base64.
func picture(t testing.TB, format string, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, w, h))
	var err error
	if format == "png" {
		err = png.Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestMedia(t *testing.T) {
	webp := base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\x03\x00\xff\x01\x00\x00\x00"))
	for _, tt := range []struct {
		name, model, mime, data, detail string
		want                            sluice.Tokens
	}{
		{"tiles low", "gpt-4o", "image/png", picture(t, "png", 1024, 1024), "low", 85},
		{"tiles high", "gpt-4o", "image/png", picture(t, "png", 1024, 1024), "high", 765},
		{"tiles wide", "gpt-4o-2024-11-20", "image/jpeg", picture(t, "jpeg", 2048, 4096), "", 1105},
		{"patches", "gpt-5.6-luna", "image/jpeg", picture(t, "jpeg", 1024, 1024), "", 1229},
		{"patches capped", "gpt-4.1-mini", "image/png", picture(t, "png", 2400, 1800), "", 2489},
		{"webp", "gpt-4o", "image/webp", webp, "", 425},
		{"open", "sim-small", "image/png", picture(t, "png", 64, 64), "", 5},
		{"not an image", "gpt-4o", "image/png", "AAAA", "", 1445},
		{"escaped slashes", "gpt-4o", "image/png", strings.ReplaceAll(picture(t, "png", 600, 600), "/", `\/`), "", 765},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"model":"` + tt.model + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"detail":"` + tt.detail + `","url":"data:` + tt.mime + `;base64,` + tt.data + `"}}]}]}`
			h := mustScan(t, Chat, body)
			if got := h.Estimate - h.Text; got != tt.want {
				t.Errorf("got %d tokens, want %d", got, tt.want)
			}
			if h.Bound < h.Estimate {
				t.Errorf("got bound %d below estimate %d", h.Bound, h.Estimate)
			}
		})
	}
	body := `{"model":"claude-opus-4-6","max_tokens":1,"messages":[{"role":"user","content":[{"source":{"type":"base64","media_type":"image/png","data":"` + picture(t, "png", 1000, 750) + `"},"type":"image"}]}]}`
	h := mustScan(t, Messages, body)
	if got := h.Estimate - h.Text; got != 1000 {
		t.Errorf("got %d tokens, want w·h/750 = 1000", got)
	}
	if old, _ := h.For("claude-opus-4-6"); old != h.Estimate {
		t.Errorf("got %d, want %d", old, h.Estimate)
	}
	url := mustScan(t, Messages, `{"model":"claude-opus-4-8","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]}`)
	if got := url.Estimate - url.Text; got != 4900 || url.Unbounded {
		t.Errorf("got %d unbounded %v: an image by URL counts as the model's largest", got, url.Unbounded)
	}
}

// The bound holds every byte that is not media.
func TestBound(t *testing.T) {
	text := strings.Repeat("~!", 50000)
	h := mustScan(t, Chat, `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
	if h.Bound < sluice.Tokens(len(text)) {
		t.Errorf("got bound %d of %d bytes", h.Bound, len(text))
	}
}

func chatBody(text string) []byte {
	return []byte(`{"model":"gpt-4o","stream":true,"max_tokens":512,"messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"` + text + `"}]}`)
}

const prose = `The gateway reads the whole body before it calls the upstream, scans its head once, and passes every byte on as it came. `

// A scan's garbage must not grow with the body.
func TestScanAllocs(t *testing.T) {
	measure := func(body []byte) float64 {
		return testing.AllocsPerRun(5, func() {
			if _, err := Scan(Chat, body); err != nil {
				t.Fatal(err)
			}
		})
	}
	small, large := measure(chatBody(prose)), measure(chatBody(strings.Repeat(prose, 5000)))
	if small > 6 || large > small {
		t.Errorf("got %v allocations for a small body and %v for a large one, want at most 6 for both", small, large)
	}
	image := strings.Repeat("iVBORw0KGgo", 2<<20)
	body := []byte(`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`)
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Scan(Chat, body)
		}
	}).AllocedBytesPerOp()
	if got > 64<<10 { // cP1
		t.Errorf("scanning a %d MB image allocates %d bytes", len(body)>>20, got)
	}
}

func BenchmarkScan(b *testing.B) {
	run := func(name string, body []byte) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(Chat, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("small", chatBody(prose))
	run("prose4MB", chatBody(strings.Repeat(prose, 4<<20/len(prose))))
	run("escaped4MB", chatBody(strings.Repeat(`func f() {\n\treturn \"x\"\n}\n`, 4<<20/30)))
	run("chinese4MB", chatBody(strings.Repeat(`网关在调用上游之前读取整个请求体`, 4<<20/48)))
	run("base64_20MB", []byte(`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("iVBORw0KGgo", 20<<20/11)+`"}}]}]}`))
	var msgs strings.Builder
	for range 20000 {
		msgs.WriteString(`,{"role":"user","content":"` + prose + `"}`)
	}
	run("messages3MB", []byte(`{"model":"gpt-4o","messages":[`+msgs.String()[1:]+`]}`))
}

// FuzzScan: what is accepted is valid JSON by two other parsers, and what a strict
// parser refuses is refused.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"model":"m"}`, `{"model":"m","messages":[{"role":"user","content":"h\u00e9 \ud83d\ude00"}]}`, `{"model":"m","x":[1,-0.5e3,true,null,{"a":{}}]}`,
		`{"model":"m","n":1e400}`, `{"model":"m","model":"n"}`, `{"model":"m","\u006dodel":1}`, "{\"model\":\"\xff\"}", `{"Model":"m","model":"m"}`,
		`{"model":"m","prompt":[1,2],"input":[[3]],"tools":[{"type":"x"}],"stream_options":{}}`,
	} {
		for op := range Models {
			f.Add(uint8(op), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, op uint8, body []byte) {
		before := bytes.Clone(body)
		h, err := Scan(Operation(op)%Models, body)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		strict := jsontext.Value(body).IsValid() // refuses duplicate keys and bad UTF-8
		if err == nil && !strict {
			t.Fatalf("accepted %q, which a strict parser refuses", body)
		}
		if err == nil && !json.Valid(body) {
			t.Fatalf("accepted %q, which encoding/json refuses", body)
		}
		if err != nil && strict && strings.Contains(err.Error(), "the request body is refused") {
			msg := err.Error()
			for _, ours := range []string{"nesting", "number is", "where an object", "too many keys"} {
				if strings.Contains(msg, ours) {
					return
				}
			}
			t.Fatalf("refused %q, which a strict parser accepts: %v", body, err)
		}
		if err == nil && (h.Model == "" || h.Estimate < 0 || h.Bound < 0 || h.Choices < 0) {
			t.Fatalf("got %+v", h)
		}
	})
}
