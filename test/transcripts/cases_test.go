package transcripts

import (
	"testing"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/wire"
)

// dollars is a price of so many thousandths of a dollar for a million tokens.
func dollars(mills int64) sluice.Price { return sluice.Price(mills * 1_000_000) }

// TestCase_cC1_UsageBlobs: what providers tell of an answer with cache reads and
// writes becomes disjoint classes that sum to the provider's total, and costs what a
// person makes of it. The costs are in nano-dollars, worked out beside each.
func TestCase_cC1_UsageBlobs(t *testing.T) {
	row := func(in, read, write, write1h, out, reasoning int64) *price.Row {
		return &price.Row{Rates: price.Rates{
			Input: dollars(in), CacheRead: dollars(read), CacheWrite: dollars(write), CacheWrite1h: dollars(write1h), Output: dollars(out), Reasoning: dollars(reasoning),
		}}
	}
	for _, tt := range []struct {
		name  string
		op    wire.Operation
		body  string
		row   *price.Row
		want  sluice.Usage
		total sluice.Tokens // as the provider tells it, or as its documentation sums it
		cost  sluice.Nano
	}{
		{
			// 10,000 − 6,000 − 1,000 = 3,000 × 200 + 6,000 × 20 + 1,000 × 250 + (500 − 300) × 1,200 + 300 × 1,200
			"OpenAI: parts of the prompt", wire.Chat,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"abc"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10000,"completion_tokens":500,"total_tokens":10500,"prompt_tokens_details":{"cached_tokens":6000,"cache_write_tokens":1000,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":300,"audio_tokens":0}}}`,
			row(200, 20, 250, 250, 1200, 1200),
			sluice.Usage{Input: 3000, CacheRead: 6000, CacheWrite: 1000, Output: 200, Reasoning: 300},
			10_500, 600_000 + 120_000 + 250_000 + 240_000 + 360_000,
		},
		{
			// 2,048 × 5,000 + 100,000 × 500 + 4,096 × 6,250 + 1,024 × 10,000 + 700 × 25,000
			"Anthropic: beside the input, two lifetimes", wire.Messages,
			`{"type":"message","role":"assistant","content":[{"type":"text","text":"abc"}],"stop_reason":"end_turn","usage":{"input_tokens":2048,"cache_creation_input_tokens":5120,"cache_read_input_tokens":100000,"cache_creation":{"ephemeral_5m_input_tokens":4096,"ephemeral_1h_input_tokens":1024},"output_tokens":700,"output_tokens_details":{"thinking_tokens":400}}}`,
			row(5000, 500, 6250, 10_000, 25_000, 25_000),
			sluice.Usage{Input: 2048, CacheRead: 100_000, CacheWrite: 4096, CacheWrite1h: 1024, Output: 300, Reasoning: 400},
			2048 + 5120 + 100_000 + 700,
			10_240_000 + 50_000_000 + 25_600_000 + 10_240_000 + 17_500_000,
		},
		{
			// (8,000 − 6,000 + 100) × 300 + 6,000 × 30 + 40 × 2,500 + 260 × 2,500: the results of tools are input,
			// thoughts stand beside the candidates
			"Gemini: parts of the prompt, thoughts beside the answer", wire.GenerateContent,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"abc"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":8000,"cachedContentTokenCount":6000,"candidatesTokenCount":40,"toolUsePromptTokenCount":100,"thoughtsTokenCount":260,"totalTokenCount":8400}}`,
			row(300, 30, 300, 300, 2500, 2500),
			sluice.Usage{Input: 2100, CacheRead: 6000, Output: 40, Reasoning: 260},
			8400, 630_000 + 180_000 + 100_000 + 650_000,
		},
		{
			// 30 × 3,000 + 1,000 × 300 + 500 × 3,750 + 200 × 6,000 + 60 × 15,000
			"Bedrock: beside the input, by lifetime", wire.Converse,
			`{"output":{"message":{"role":"assistant","content":[{"text":"abc"}]}},"stopReason":"end_turn","usage":{"inputTokens":30,"outputTokens":60,"totalTokens":1790,"cacheReadInputTokens":1000,"cacheWriteInputTokens":700,"cacheDetails":[{"ttl":"5m","inputTokens":500},{"ttl":"1h","inputTokens":200}]},"metrics":{"latencyMs":100}}`,
			row(3000, 300, 3750, 6000, 15_000, 15_000),
			sluice.Usage{Input: 30, CacheRead: 1000, CacheWrite: 500, CacheWrite1h: 200, Output: 60},
			1790, 90_000 + 300_000 + 1_875_000 + 1_200_000 + 900_000,
		},
		{
			// 176 × 270 + 1,024 × 70 + 40 × 1,100 + 300 × 1,100: hits and misses are the prompt
			"DeepSeek: hits and misses", wire.Chat,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"abc"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1200,"completion_tokens":340,"total_tokens":1540,"prompt_cache_hit_tokens":1024,"prompt_cache_miss_tokens":176,"completion_tokens_details":{"reasoning_tokens":300}}}`,
			row(270, 70, 270, 270, 1100, 1100),
			sluice.Usage{Input: 176, CacheRead: 1024, Output: 40, Reasoning: 300},
			1540, 47_520 + 71_680 + 44_000 + 330_000,
		},
		{
			// 29 × 3,000 + 8 × 750 + 30 × 15,000 + 294 × 15,000: reasoning stands beside the completion
			"xAI: reasoning beside the completion", wire.Chat,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"abc"},"finish_reason":"stop"}],"usage":{"prompt_tokens":37,"completion_tokens":30,"total_tokens":361,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":294}}}`,
			row(3000, 750, 3000, 3000, 15_000, 15_000),
			sluice.Usage{Input: 29, CacheRead: 8, Output: 30, Reasoning: 294},
			361, 87_000 + 6000 + 450_000 + 4_410_000,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tap := wire.NewTap(tt.op, wire.TapOptions{})
			if _, err := tap.Body([]byte(tt.body)); err != nil {
				t.Fatal(err)
			}
			got, ok := tap.Usage()
			tt.want.Source = sluice.UsageReported
			if !ok || got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got.Total() != tt.total {
				t.Errorf("the classes sum to %d, the provider's total is %d", got.Total(), tt.total)
			}
			if cost := tt.row.Cost(got); cost != tt.cost {
				t.Errorf("costs %v, by hand %v", cost, tt.cost)
			}
		})
	}
}
