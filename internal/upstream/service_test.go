package upstream

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/wire"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		name, base string
		t          Target
		call       Call
		want       string // as it is sent, host and all
		form       Address
	}{
		{"plain", "https://api.openai.com/v1", Target{}, Call{Op: wire.Chat, Model: "gpt-x"}, "https://api.openai.com/v1/chat/completions", Address{}},
		{"plain with a slash", "https://h/a%2Fb/v1/", Target{}, Call{Op: wire.Chat}, "https://h/a%2Fb/v1/chat/completions", Address{}},
		{"azure", "https://r.openai.azure.com/openai/v1", Target{Service: Azure}, Call{Op: wire.Embeddings, Model: "d"}, "https://r.openai.azure.com/openai/v1/embeddings", Address{}},
		{
			"azure's deployments", "https://r.openai.azure.com/openai",
			Target{Service: Deployments, APIVersion: "2024-10-21"},
			Call{Op: wire.Chat, Model: "my deployment/1", Stream: true},
			"https://r.openai.azure.com/openai/deployments/my%20deployment%2F1/chat/completions?api-version=2024-10-21",
			Address{NoModel: true},
		},
		{
			"claude on vertex", BaseOf(Vertex, wire.Anthropic, "us-east5"),
			Target{Service: Vertex, Project: "p-1", Location: "us-east5"},
			Call{Op: wire.Messages, Model: "claude-x@20260101"},
			"https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/claude-x@20260101:rawPredict",
			Address{NoModel: true, Form: Form{Version: vertexVersion}},
		},
		{
			"claude on vertex, streamed", BaseOf(Vertex, wire.Anthropic, "global"),
			Target{Service: Vertex, Project: "p-1", Location: "global"},
			Call{Op: wire.Messages, Model: "claude-x", Stream: true},
			"https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/anthropic/models/claude-x:streamRawPredict",
			Address{NoModel: true, Form: Form{Version: vertexVersion}},
		},
		{
			"claude on vertex, counted", BaseOf(Vertex, wire.Anthropic, "eu"),
			Target{Service: Vertex, Project: "p-1", Location: "eu"},
			Call{Op: wire.CountTokens, Model: "claude-x"},
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/anthropic/models/count-tokens:rawPredict",
			Address{Form: Form{Version: vertexVersion}},
		},
		{
			"chat on vertex", BaseOf(Vertex, wire.OpenAI, "us"),
			Target{Service: Vertex, Project: "p", Location: "us"},
			Call{Op: wire.Chat, Model: "google/gemini-x"},
			"https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/endpoints/openapi/chat/completions",
			Address{},
		},
		{
			"bedrock", BaseOf(Bedrock, wire.Anthropic, "us-east-1"),
			Target{Service: Bedrock, Location: "us-east-1"},
			Call{Op: wire.Messages, Model: "anthropic.claude-x-v1:0"},
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x-v1%3A0/invoke",
			Address{NoModel: true, Form: Form{NoStream: true, Version: bedrockVersion, Betas: true}},
		},
		{
			"bedrock's profile, streamed", BaseOf(Bedrock, wire.Anthropic, "us-east-1"),
			Target{Service: Bedrock, Location: "us-east-1"},
			Call{Op: wire.Messages, Model: "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.claude-x", Stream: true},
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.claude-x/invoke-with-response-stream",
			Address{NoModel: true, Form: Form{NoStream: true, Version: bedrockVersion, Betas: true}},
		},
		{
			"converse", BaseOf(Bedrock, wire.Bedrock, "us-east-1"),
			Target{Service: Bedrock, Dialect: wire.Bedrock, Location: "us-east-1"},
			Call{Op: wire.Converse, Model: "anthropic.claude-3-5-sonnet-20241022-v2:0"},
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/converse",
			Address{NoModel: true, Form: Form{NoStream: true}},
		},
		{
			"converse with a profile, streamed", "http://10.0.0.1:8000",
			Target{Dialect: wire.Bedrock},
			Call{Op: wire.Converse, Model: "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.claude-x", Stream: true},
			"http://10.0.0.1:8000/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.claude-x/converse-stream",
			Address{NoModel: true, Form: Form{NoStream: true}},
		},
		{"chat on bedrock", BaseOf(Bedrock, wire.OpenAI, "eu-west-1"), Target{Service: Bedrock}, Call{Op: wire.Chat}, "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions", Address{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, err := url.Parse(tt.base)
			if err != nil {
				t.Fatal(err)
			}
			tt.t.BaseURL = base
			at := tt.t.At(tt.call)
			u := tt.t.url(at.Path)
			if got := u.Scheme + "://" + u.Host + u.RequestURI(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			tt.form.Path = at.Path
			if diff := cmp.Diff(tt.form, at); diff != "" {
				t.Errorf("form (-want +got):\n%s", diff)
			}
		})
	}
}
