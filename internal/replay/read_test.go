package replay

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadFormats(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Row
	}{
		{
			"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			[]Row{{Input: 374, Output: 44}, {At: 4314579 * time.Microsecond, Input: 396, Output: 109}},
		},
		{
			"vtc", "req_time_s,client,prompt_len,output_len\n1.5,c13,13,199\n0.5,c2,36,137\n",
			[]Row{{At: 0, Client: "c13", Input: 13, Output: 199}, {At: 0, Client: "c2", Input: 36, Output: 137}},
		},
		{
			"mooncake", `{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}` + "\n" + `{"timestamp": 1500, "input_length": 7322, "output_length": 0, "hash_ids": [0, 14]}` + "\n",
			[]Row{{Input: 6758, Output: 500, Blocks: []int64{0, 1}}, {At: 1500 * time.Millisecond, Input: 7322, Output: 1, Blocks: []int64{0, 14}}},
		},
		{
			"qwen", `{"chat_id": 7, "parent_chat_id": -1, "timestamp": 2.5, "input_length": 10, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [3]}`,
			[]Row{{At: 2500 * time.Millisecond, Client: "7", Task: "text", Input: 10, Output: 5, Blocks: []int64{3}}},
		},
		{
			"burstgpt", "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,,ChatGPT,472,18,490,Conversation log\n6,,,GPT-4,10,0,10,Conversation log\n45,,,GPT-4,1087,230,1317,Conversation log\n",
			[]Row{{Task: "chatgpt", Input: 472, Output: 18}, {At: 40 * time.Second, Task: "gpt-4", Input: 1087, Output: 230}},
		},
		{
			"own", "\ufeff" + `{"at":2,"client":"a","input":100,"output":20,"model":"m","task":"t","stream":false,"cancel_after":3}` + "\n\n" + `{"at":1,"input":5,"output":6}`,
			[]Row{{At: time.Second, Input: 5, Output: 6}, {At: 2 * time.Second, Client: "a", Input: 100, Output: 20, Model: "m", Task: "t", Whole: true, CancelAfter: 3}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text), ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Row{}, "Line")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadColumns(t *testing.T) {
	columns := &Columns{At: "when", Input: "in", Output: "out", Client: "who", Unit: time.Millisecond}
	tests := []struct {
		name, text string
		want       []Row
	}{
		{
			"csv", "who,when,out,in\na,1000,20,100\n\nb,3500,1,7\n",
			[]Row{{Client: "a", Input: 100, Output: 20, Line: 2}, {At: 2500 * time.Millisecond, Client: "b", Input: 7, Output: 1, Line: 4}},
		},
		{
			"json", `{"when": "2026-11-01T00:00:00Z", "in": 5, "out": 0, "who": "x", "more": [1]}` + "\n" + `{"when": "2026-11-01 00:01:00", "in": 6, "out": 2, "who": "y"}`,
			[]Row{{Client: "x", Input: 5, Output: 1, Line: 1}, {At: time.Minute, Client: "y", Input: 6, Output: 2, Line: 2}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text), ReadOptions{Columns: columns})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for text, want := range map[string]string{
		"when,in,output,who\n":                    `line 1: the columns ["when" "in" "out" "who"] are wanted`,
		"who,when,out,in\na,soon,20,100\n":        `line 2: time "soon": write a number`,
		"who,when,out,in\na,1,20,100\na,2,-1,1":   `line 3: token count "-1"`,
		`{"when": 1, "in": 5, "who": "x"}`:        `line 1: "out" is missing`,
		`{"when": 1, "in": 5,`:                    "line 1: not a trace row",
		"who,when,out,in\na,-1,20,100\n":          `line 2: time "-1"`,
		"who,when,out,in\na,1,20\n":               "line 2: has 3 columns",
		"who,when,out,in\na,99000000000000,2,3\n": "line 2: time 9.9e+10 s is out of range",
	} {
		if _, err := Read(strings.NewReader(text), ReadOptions{Columns: columns}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestReadVidurDrawsArrivals(t *testing.T) {
	text := "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n" + strings.Repeat("3772,54,3826,69.85\n", 2000)
	rows, err := Read(strings.NewReader(text), ReadOptions{Rate: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	span := rows[len(rows)-1].At
	if len(rows) != 2000 || span < 180*time.Second || span > 220*time.Second {
		t.Errorf("got %d rows in %s, want 2000 in about 200 s", len(rows), span)
	}
}

const rates = "client,window_start_s,rate_rps,cv_iat,pattern,arg1,arg2\n7,0,10,1.2,Gamma,0.69,0.14\n7,600,5,3,Weibull,0.45,0.08\n8,0,1,0.5,Gamma,4,0.25\n"

const lens = "client,window_start_s,in_mean,in_p50,in_p90,in_p99,out_mean,out_p50,out_p90,out_p99,reason_ratio_mean\n7,0,150,100,300,900,40,20,100,300,\n"

func TestReadServeGen(t *testing.T) {
	read := func() []Row {
		rows, err := Read(strings.NewReader(rates), ReadOptions{Seed: 3, Lengths: strings.NewReader(lens)})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := read()
	if diff := cmp.Diff(rows, read()); diff != "" {
		t.Error("the same seed makes other rows")
	}
	per := map[string]int{}
	var inputs []int64
	for _, r := range rows {
		per[r.Client]++
		if r.Client == "7" {
			inputs = append(inputs, r.Input)
		}
	}
	if per["7"] < 7500 || per["7"] > 10_500 || per["8"] < 540 || per["8"] > 660 {
		t.Errorf("got %v requests, want about 9000 and 600", per)
	}
	below := 0
	for _, n := range inputs {
		if n <= 100 {
			below++
		}
	}
	if share := float64(below) / float64(len(inputs)); share < 0.45 || share > 0.55 {
		t.Errorf("%.2f of the inputs are below the median", share)
	}
}

func TestReadErrorsNameTheLine(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
		want       string
	}{
		{"time", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6,1,2\nyesterday,1,2\n", 3, "TIMESTAMP"},
		{"count", "req_time_s,client,prompt_len,output_len\n0,c,x,1\n", 2, "token count"},
		{"negative", "req_time_s,client,prompt_len,output_len\n0,c,-3,1\n", 2, "token count"},
		{"infinite", "req_time_s,client,prompt_len,output_len\n0,c,NaN,1\n", 2, "token count"},
		{"columns", "req_time_s,client,prompt_len,output_len\n0,c\n", 2, "columns"},
		{"header", "a,b\n", 1, "unknown trace format"},
		{"field", `{"at":1,"inputt":3}`, 1, "inputt"},
		{"task", `{"at":1,"task":"NO GOOD"}`, 1, "sluice-task"},
		{"json", `{"timestamp":0,"input_length":1,"output_length":1}` + "\n{", 2, "not a trace row"},
		{"late", `{"at":1e12}`, 1, "out of range"},
	}
	for _, tt := range tests {
		_, err := Read(strings.NewReader(tt.text), ReadOptions{})
		le, ok := errors.AsType[*LineError](err)
		if !ok || le.Line != tt.line || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want line %d and %q", tt.name, err, tt.line, tt.want)
		}
	}
	for _, empty := range []string{"", "\n\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n"} {
		if _, err := Read(strings.NewReader(empty), ReadOptions{}); err == nil {
			t.Errorf("%q is accepted", empty)
		}
	}
}

func TestCut(t *testing.T) {
	rows := []Row{{At: 1 * time.Second}, {At: 2 * time.Second}, {At: 3 * time.Second}}
	if got := len(Cut(rows, 3*time.Second, 0)); got != 2 {
		t.Errorf("got %d rows before 3 s, want 2", got)
	}
	if got := len(Cut(rows, 0, 1)); got != 1 {
		t.Errorf("got %d rows, want 1", got)
	}
}

// Synthetic rows have the shape of the trace that they stand for.
func TestSynthesise(t *testing.T) {
	for _, name := range Shapes() {
		t.Run(name, func(t *testing.T) {
			rows, err := Synthesise(name, ReadOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Synthesise(name, ReadOptions{Seed: 1})
			if diff := cmp.Diff(rows[:100], again[:100]); diff != "" {
				t.Error(diff)
			}
			s := shapes[name]
			var in, out []int64
			for i, r := range rows {
				in, out = append(in, r.Input), append(out, r.Output)
				if i > 0 && r.At < rows[i-1].At {
					t.Fatal("rows are not in order of time")
				}
			}
			for _, q := range []struct {
				what      string
				values    []int64
				p50, p90  float64
				tolerance float64
			}{{"input", in, s.inP50, s.inP90, 0.15}, {"output", out, s.outP50, s.outP90, 0.15}} {
				if got := quantileOf(q.values, 0.5); got < q.p50*(1-q.tolerance) || got > q.p50*(1+q.tolerance) {
					t.Errorf("%s p50 is %g, want %g", q.what, got, q.p50)
				}
				if got := quantileOf(q.values, 0.9); got < q.p90*(1-q.tolerance) || got > q.p90*(1+q.tolerance) {
					t.Errorf("%s p90 is %g, want %g", q.what, got, q.p90)
				}
			}
			if s.cv < 2 {
				if rate := float64(len(rows)) / s.span.Seconds(); rate < s.rate*0.9 || rate > s.rate*1.1 {
					t.Errorf("rate is %g, want %g", rate, s.rate)
				}
			}
		})
	}
	if _, err := Open("synthetic:nope", ReadOptions{}); err == nil || !strings.Contains(err.Error(), "azure-conv") {
		t.Errorf("got %v, want the known shapes", err)
	}
}

// Where the published traces lie beside the checkout, they are read whole.
func TestPublishedTraces(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "traces")
	want := map[string]int{
		"azure_llm_2023_code.csv": 8819, "azure_llm_2023_conv.csv": 19366, "mooncake_conversation.jsonl": 11866,
		"mooncake_synthetic.jsonl": 3993, "vtc_arena_27clients.csv": 1500, "vidur_arxiv_summarization_lengths.csv": 28257,
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no published traces here")
	}
	for name, n := range want {
		rows, err := Open(filepath.Join(dir, name), ReadOptions{})
		if err != nil || len(rows) != n {
			t.Errorf("%s: got %d rows, %v, want %d", name, len(rows), err, n)
		}
	}
	rows, err := Open(filepath.Join(dir, "servegen_m-large_rates.csv"), ReadOptions{Until: 10 * time.Minute})
	if err != nil || len(rows) < 1000 {
		t.Errorf("ServeGen: got %d rows, %v", len(rows), err)
	}
	conv, err := Open(filepath.Join(dir, "azure_llm_2023_conv.csv"), ReadOptions{Until: 5 * time.Minute})
	if err != nil || len(conv) == 0 || conv[len(conv)-1].At >= 5*time.Minute {
		t.Errorf("the first minutes: %d rows, %v", len(conv), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(rates)
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
	f.Add(`{"at":2,"client":"a","input":100,"output":20}`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := Read(strings.NewReader(text), ReadOptions{Limit: 100, Until: time.Second})
		if err != nil {
			return
		}
		for _, r := range rows {
			if r.At < 0 || r.At >= time.Second || r.Input < 1 || r.Output < 1 {
				t.Fatalf("row %+v", r)
			}
		}
	})
}
