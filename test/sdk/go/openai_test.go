// Package sdk runs openai-go, unchanged but for base URL and key, against a live
// gateway, and holds translated bodies to the types of the official clients. It is a
// module of its own: compiling the clients takes minutes. Run by test/sdk/sdk_test.go,
// which sets the environment.
package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

const question = "Tell me about the sluices of the Rhine. [[tokens=60]]"

func client(t *testing.T, keyVariable string) openai.Client {
	t.Helper()
	url, key := os.Getenv("SLUICE_URL"), os.Getenv(keyVariable)
	if url == "" || key == "" {
		t.Fatal("SLUICE_URL and keys are not set: run this through test/sdk/sdk_test.go")
	}
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func ask(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func withTools(p openai.ChatCompletionNewParams) openai.ChatCompletionNewParams {
	for _, name := range []string{"get_weather", "get_time"} {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name:       name,
			Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
		}))
	}
	return p
}

func TestPlain(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	got, err := c.Chat.Completions.New(t.Context(), ask("sim-small", question))
	if err != nil {
		t.Fatal(err)
	}
	if got.Usage.CompletionTokens != 60 || got.Choices[0].Message.Content == "" {
		t.Errorf("usage %+v, text %q", got.Usage, got.Choices[0].Message.Content)
	}
}

func TestStreamed(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	p := ask("sim-small", question)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if all.Usage.CompletionTokens != 60 || all.Choices[0].FinishReason != "stop" {
		t.Errorf("usage %+v, finish %q", all.Usage, all.Choices[0].FinishReason)
	}
}

func TestParallelTools(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	stream := c.Chat.Completions.NewStreaming(t.Context(), withTools(ask("sim-small", "weather and time in Basel?")))
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	calls := all.Choices[0].Message.ToolCalls
	if len(calls) != 2 {
		t.Fatalf("%d tool calls, want 2", len(calls))
	}
	for _, call := range calls {
		if !json.Valid([]byte(call.Function.Arguments)) {
			t.Errorf("arguments of %s are not JSON: %q", call.Function.Name, call.Function.Arguments)
		}
	}
}

func TestCancelInMidStream(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := c.Chat.Completions.NewStreaming(ctx, ask("sim-small", "On and on. [[tokens=2000!gap=20ms]]"))
	n := 0
	for stream.Next() {
		if n++; n == 5 {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("the stream ended with %v", stream.Err())
	}
}

func TestRateLimit(t *testing.T) {
	c := client(t, "SLUICE_SMALL_KEY")
	var failed *openai.Error
	for range 2 {
		if _, err := c.Chat.Completions.New(t.Context(), ask("sim-small", "[[tokens=2]]")); err != nil && !errors.As(err, &failed) {
			t.Fatalf("not an API error: %v", err)
		}
	}
	if failed == nil || failed.StatusCode != 429 || failed.Code != "rate_limit_exceeded" {
		t.Errorf("got %v", failed)
	}
}

func TestUpstreamDeath(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	for _, model := range []string{"dies", "truncates"} {
		stream := c.Chat.Completions.NewStreaming(t.Context(), ask(model, question))
		n := 0
		for stream.Next() {
			n++
		}
		if n == 0 || stream.Err() == nil {
			t.Errorf("%s: %d chunks, then %v: a death must not read as an end", model, n, stream.Err())
		}
	}
}

// TestTranslated is served by a backend of the Anthropic dialect.
func TestTranslated(t *testing.T) {
	c := client(t, "SLUICE_KEY")
	plain, err := c.Chat.Completions.New(t.Context(), ask("claude", question))
	if err != nil {
		t.Fatal(err)
	}
	p := withTools(ask("claude", "weather and time in Basel?"))
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Errorf("a chunk does not go with those before: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if plain.Usage.CompletionTokens != 60 || all.Usage.CompletionTokens == 0 || all.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("usage %+v and %+v, finish %q", plain.Usage, all.Usage, all.Choices[0].FinishReason)
	}
	calls := all.Choices[0].Message.ToolCalls
	if len(calls) != 2 || !json.Valid([]byte(calls[0].Function.Arguments)) || !json.Valid([]byte(calls[1].Function.Arguments)) {
		t.Errorf("calls %+v", calls)
	}
	stream = c.Chat.Completions.NewStreaming(t.Context(), ask("claude-dies", question))
	n := 0
	for stream.Next() {
		n++
	}
	if n == 0 || stream.Err() == nil {
		t.Errorf("%d chunks, then %v: a death must not read as an end", n, stream.Err())
	}
	bad := ask("claude", "x")
	bad.Seed = openai.Int(7)
	var refused *openai.Error
	if _, err := c.Chat.Completions.New(t.Context(), bad); !errors.As(err, &refused) || refused.Param != "seed" || refused.Code != "untranslatable" {
		t.Errorf("a seed: %v", err)
	}
}
