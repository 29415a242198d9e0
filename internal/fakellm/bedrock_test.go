package fakellm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

const aConverse = `{"messages":[{"role":"user","content":[{"text":"hello"}]}],"inferenceConfig":{"maxTokens":50}}`

// Converse answers in one piece and in frames, which say the same in the dialect's
// order: the usage comes after the stop.
func TestConverse(t *testing.T) {
	_, at := provider(t, Options{Instant: true})
	whole := post(t, at+"/model/sim-small/converse", aConverse)
	var in struct {
		Output struct {
			Message struct{ Content []struct{ Text string } }
		}
		StopReason string
		Usage      struct{ InputTokens, OutputTokens, TotalTokens int64 }
	}
	if err := json.Unmarshal([]byte(whole.body), &in); err != nil || whole.status != 200 || len(in.Output.Message.Content) != 1 || in.Usage.OutputTokens == 0 ||
		in.Usage.TotalTokens != in.Usage.InputTokens+in.Usage.OutputTokens || whole.header.Get("X-Amzn-Requestid") == "" {
		t.Fatalf("got %d %s, %v", whole.status, whole.body, err)
	}
	streamed := post(t, at+"/model/sim-small/converse-stream", aConverse)
	if got := streamed.header.Get("Content-Type"); got != "application/vnd.amazon.eventstream" {
		t.Errorf("the type is %s", got)
	}
	frames := wire.NewFrames(wire.Converse, strings.NewReader(streamed.body), 0)
	var names, text []string
	for {
		ev, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Delta struct{ Text string } }
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			t.Fatal(err)
		}
		if n := len(names); n == 0 || names[n-1] != string(ev.Name) {
			names = append(names, string(ev.Name))
		}
		text = append(text, d.Delta.Text)
	}
	if got := strings.Join(names, " "); got != "messageStart contentBlockDelta contentBlockStop messageStop metadata" {
		t.Errorf("the events are %s", got)
	}
	if strings.Join(text, "") == "" {
		t.Error("there is no text")
	}
}

// What the service refuses is refused, as an exception.
func TestConverseRefusals(t *testing.T) {
	_, at := provider(t, Options{Instant: true, Strict: true})
	for name, body := range map[string]string{
		"unknown field":   `{"model":"x","messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		"alternate":       `{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"user","content":[{"text":"a"}]}]}`,
		"start with":      `{"messages":[{"role":"assistant","content":[{"text":"a"}]}]}`,
		"blank":           `{"messages":[{"role":"user","content":[{"text":""}]}]}`,
		"toolConfig":      `{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[]}}]}]}`,
		"at least one me": `{"messages":[]}`,
	} {
		a := post(t, at+"/model/sim-small/converse", body)
		if a.status != 400 || !strings.Contains(a.body, name) || !strings.HasPrefix(a.header.Get("X-Amzn-Errortype"), "ValidationException:") {
			t.Errorf("%s: got %d %s %s", name, a.status, a.header, a.body)
		}
	}
	if a := post(t, at+"/model/nobody/converse", aConverse); a.status != 404 || !strings.HasPrefix(a.header.Get("X-Amzn-Errortype"), "ResourceNotFoundException") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// What is signed is what is sent: the path of a model whose id has a colon, or is an
// ARN with a slash, as it stands on the wire.
func TestConverseIsSigned(t *testing.T) {
	_, server := provider(t, Options{Instant: true, Access: Access{KeyID: "AKIDEXAMPLE", Secret: "wJalr"}})
	base, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	c := upstream.New(upstream.Options{Dialer: egress.New(egress.Options{})})
	defer c.Close()
	for _, model := range []string{
		"anthropic.claude-3-5-sonnet-20241022-v2:0", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-x-v1:0", "a b+c~d",
	} {
		for _, stream := range []bool{true, false} {
			for secret, want := range map[string]int{"wJalr": 200, "other": 403} {
				target := &upstream.Target{
					BaseURL: base, Dialect: wire.Bedrock, Service: upstream.Bedrock, Location: "us-east-1",
					Login: upstream.Login{AWS: upstream.AWS{KeyID: "AKIDEXAMPLE", Secret: sluice.NewSecret(secret), Session: sluice.NewSecret("session")}},
				}
				at := target.At(upstream.Call{Op: wire.Converse, Model: model, Stream: stream})
				ans, err := c.Do(context.Background(), target, upstream.Request{Path: at.Path, Body: []byte(aConverse), Stream: stream})
				if err != nil {
					t.Fatal(err)
				}
				if ans.Status != want || want == 200 && ans.Events != stream {
					t.Errorf("%s, stream %v, secret %s: got %d %s", model, stream, secret, ans.Status, ans.Refusal)
				}
				ans.Close()
			}
		}
	}
	if a := post(t, server+"/model/m/converse", aConverse); a.status != 403 || !strings.Contains(a.header.Get("X-Amzn-Errortype"), "InvalidSignature") {
		t.Errorf("unsigned: got %d %s", a.status, a.body)
	}
}

// A frame whose checksum is wrong, an exception and a late usage come as scripted.
func TestConverseFaults(t *testing.T) {
	_, at := provider(t, Options{Instant: true})
	stream := func(fault string) []byte {
		return []byte(post(t, at+"/model/"+url.PathEscape("sim-small!"+fault)+"/converse-stream", aConverse).body)
	}
	end := func(b []byte) (last wire.Event, err error) {
		f := wire.NewFrames(wire.Converse, bytes.NewReader(b), 0)
		for {
			ev, err := f.Next()
			if err != nil {
				return last, err
			}
			ev.Name, ev.Data = bytes.Clone(ev.Name), bytes.Clone(ev.Data)
			last = ev
		}
	}
	if _, err := end(stream("corrupt=2")); err == io.EOF || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("corrupt: %v", err)
	}
	if last, err := end(stream("error-event=2!exception=throttling")); err != io.EOF || string(last.Name) != "error" || !strings.Contains(string(last.Data), "throttlingException") {
		t.Errorf("exception: %s, %v", last.Data, err)
	}
	if last, err := end(stream("truncate=2")); err != io.EOF || string(last.Name) != "contentBlockDelta" {
		t.Errorf("truncated: %s, %v", last.Name, err)
	}
	if _, err := ParseBehaviour("exception=none"); err == nil || !strings.Contains(err.Error(), "throttling") {
		t.Errorf("got %v", err)
	}
}
