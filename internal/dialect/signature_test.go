package dialect

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"sluice/internal/wire"
)

// history is a conversation of each dialect's clients whose last answer was reasoned and
// is signed or sealed by whoever the mark says: none where it stands bare.
var history = map[wire.Operation]func(signature string) string{
	wire.Chat: func(s string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"` + s + `"}],"content":"a"},` + after
	},
	wire.Messages: func(s string) string {
		return called(`{"type":"thinking","thinking":"t","signature":"`+s+`"},{"type":"text","text":"a"}`, `{"type":"text","text":"y"}`)
	},
	wire.Responses: func(s string) string {
		return items(`{"role":"user","content":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"` + s + `"},{"role":"assistant","content":"a"},{"role":"user","content":"y"}`)
	},
	wire.GenerateContent: func(s string) string {
		if _, bare := strings.CutPrefix(s, "c2ln"); !bare {
			s = marked(signedMark, s)
		}
		return answered + `{"text":"t","thought":true,"thoughtSignature":"` + s + `"},{"text":"a"}` + thenUser
	},
}

// What a provider has signed goes back to it, byte for byte, through every dialect, and to
// no other: there it is named, or refused.
func TestSignaturesGoToTheirProviderAlone(t *testing.T) {
	for _, p := range pairs() {
		from, to := p.client.codec, p.backend.codec
		for _, s := range []struct{ mark, signature, seal string }{
			{anthropicMark, "anthropic:c2lnbmF0dXJl", "c2lnbmF0dXJl"},
			{geminiMark, "gemini:c2lnbmF0dXJl", "c2lnbmF0dXJl"},
			{openaiMark, "rs_68af40-30ba:gAAAAABo", "gAAAAABo"},
			{openaiMark, "openai:gAAAAABo", "gAAAAABo"},
			{from.signs, "c2lnbmF0dXJl", "c2lnbmF0dXJl"}, // of its own dialect's provider
		} {
			if s.mark == "" {
				s.mark = anthropicMark // a router's, which say whose where it is another's
			}
			body := history[from.op](s.signature)
			strict, warned := translateInto(t, from.op, to.op, body, nil, false), translateInto(t, from.op, to.op, body, nil, true)
			kept := s.mark == to.signs
			if (strict.Err == nil) != kept || warned.Err != nil || (warned.Report.Paths() == "") != kept {
				t.Errorf("%v: %s: strict %v, warn %v %q", p, s.signature, strict.Err, warned.Err, warned.Report.Paths())
				continue
			}
			if has := strings.Contains(string(warned.Body), `"`+s.seal+`"`); has != kept || strings.Contains(string(warned.Body), s.mark) {
				t.Errorf("%v: %s: %s", p, s.signature, warned.Body)
			}
		}
	}
}

// A signature of one answer comes back from every client to the backend that gave it,
// whole or streamed.
func TestSignaturesComeBack(t *testing.T) {
	for _, p := range pairs() {
		from, to := p.client.codec, p.backend.codec
		if to.signs == "" || to.signs == geminiMark {
			continue // which stand before parts: see the tests of its dialect
		}
		for s, got := range map[string]string{"c2lnbmF0dXJl": handed(to, from, "c2lnbmF0dXJl"), "rs_1:gAAAAABo": handed(to, from, "rs_1:gAAAAABo")} {
			if (to.signs == openaiMark) != strings.HasPrefix(s, "rs_") {
				continue
			}
			tr := translateInto(t, from.op, to.op, history[from.op](got), nil, false)
			if _, seal := unlabelled(s); tr.Err != nil || !strings.Contains(string(tr.Body), `"`+seal+`"`) {
				t.Errorf("%v: %s is told as %s, and comes back as %v %s", p, s, got, tr.Err, tr.Body)
			}
		}
	}
}

// What a router says of whose its reasoning is counts.
func TestRoutersSayWhose(t *testing.T) {
	for format, want := range map[string]string{
		"anthropic-claude-v1": anthropicMark, "openai-responses-v1": openaiMark, "azure-openai-responses-v1": openaiMark, "xai-responses-v1": openaiMark,
		"google-gemini-v1": geminiMark, "moonshot-v1": otherMark, "": anthropicMark, "unknown": anthropicMark,
	} {
		d := openaiReasoning{Format: format}
		if got := markOf(d.signed("c2ln")); got != want {
			t.Errorf("%q: %s, want %s", format, got, want)
		}
	}
	if got := (&openaiReasoning{}).signed("gAAAAABo"); markOf(got) != openaiMark {
		t.Errorf("a seal is %s", got)
	}
}

// Reasoning that is signed stands where it stood: its provider refuses a turn whose blocks
// were moved.
func TestSignedReasoningKeepsItsOrder(t *testing.T) {
	sign := func(s string) string { return marked(signedMark, "anthropic:"+s) }
	in := map[wire.Operation]string{
		wire.GenerateContent: answered + `{"text":"t","thought":true,"thoughtSignature":"` + sign("UzE=") + `"},{"text":"A"},{"text":"u","thought":true,"thoughtSignature":"` + sign("UzI=") + `"},{"text":"B"},` +
			`{"text":"","thought":true,"thoughtSignature":"` + marked(sealedMark, "anthropic:UzM=") + `"},` + callF + `]},{"role":"user","parts":[` + resultF + `]}]}`,
		wire.Responses: items(`{"role":"user","content":"x"},{"type":"reasoning","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"anthropic:UzE="},{"role":"assistant","content":"A"},` +
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"u"}],"encrypted_content":"anthropic:UzI="},{"role":"assistant","content":"B"},{"type":"reasoning","summary":[],"encrypted_content":"anthropic:UzM="},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}`),
		wire.Messages: called(`{"type":"thinking","thinking":"t","signature":"UzE="},{"type":"text","text":"A"},{"type":"thinking","thinking":"u","signature":"UzI="},{"type":"text","text":"B"},`+
			`{"type":"redacted_thinking","data":"UzM="},{"type":"tool_use","id":"c","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"c","content":"r"}`),
	}
	for op, body := range in {
		for _, to := range []wire.Operation{wire.Messages, wire.Converse} {
			if op == to {
				continue
			}
			tr := translateInto(t, op, to, body, nil, false)
			at := make([]int, 0, 6)
			for _, s := range []string{`"UzE="`, `"A"`, `"UzI="`, `"B"`, `"UzM="`, `"name":"f"`} {
				at = append(at, strings.Index(string(tr.Body), s))
			}
			if tr.Err != nil || !slices.IsSorted(at) || at[0] < 0 {
				t.Errorf("%v by %v: %v %v %s", op, to, at, tr.Err, tr.Body)
			}
		}
	}
}

// A turn of the assistant that says nothing, which an answer of no words leaves in a
// conversation, is left out: dialects refuse it.
func TestSilentTurnsAreLeftOut(t *testing.T) {
	in := map[wire.Operation][]string{
		wire.Chat: {
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":""},` + after,
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null},` + after,
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[]},` + after,
		},
		wire.Messages: {
			called(``, `{"type":"text","text":"y"}`),
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""},` + after,
		},
		wire.Responses:       {items(`{"role":"user","content":"x"},{"role":"assistant","content":""},{"role":"user","content":"y"}`), items(`{"role":"user","content":"x"},{"role":"assistant","content":[]},{"role":"user","content":"y"}`)},
		wire.GenerateContent: {answered + thenUser, answered + `{"text":""}` + thenUser},
	}
	for _, p := range pairs() {
		for _, body := range in[p.client.codec.op] {
			tr := translateInto(t, p.client.codec.op, p.backend.codec.op, body, nil, false)
			if tr.Err != nil || strings.Contains(string(tr.Body), `"assistant"`) || strings.Contains(string(tr.Body), `"model","parts"`) {
				t.Errorf("%v: %s: %v %s", p, body, tr.Err, tr.Body)
			}
		}
	}
	// What is left of a turn whose reasoning cannot be sent says nothing either.
	tr := translateInto(t, wire.Chat, wire.Messages, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"t","content":""},`+after, nil, true)
	if tr.Err != nil || strings.Contains(string(tr.Body), `"assistant"`) {
		t.Errorf("%v %s", tr.Err, tr.Body)
	}
}

// Google's clients write bytes in the alphabet of URLs, which Google alone reads.
func TestBase64OfURLsIsPutIntoTheUsual(t *testing.T) {
	for _, p := range pairs() {
		if p.client.codec != &gemini {
			continue
		}
		for _, kind := range []string{"image/png", "application/pdf"} {
			body := asks(`{"inlineData":{"mimeType":"` + kind + `","data":"iVBORw0KGgo-_w"}}`)
			if tr := translateInto(t, wire.GenerateContent, p.backend.codec.op, body, nil, false); tr.Err != nil || !strings.Contains(string(tr.Body), "iVBORw0KGgo+/w==") {
				t.Errorf("%v: %v %s", p, tr.Err, tr.Body)
			}
		}
	}
	mark := base64.RawURLEncoding.EncodeToString([]byte(signedMark + "anthropic:\xff\xfe\xfb"))
	body := answered + `{"text":"t","thought":true,"thoughtSignature":"` + mark + `"},{"text":"a"}` + thenUser
	if tr := translateInto(t, wire.GenerateContent, wire.Messages, body, nil, false); tr.Err != nil || !strings.Contains(string(tr.Body), `"thinking":"t"`) {
		t.Errorf("a signature: %v %s", tr.Err, tr.Body)
	}
	// The same in the other dialects, whose clients write it by hand.
	for op, body := range map[wire.Operation]string{
		wire.Chat:      `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/PNG;charset=utf-8;base64,iVBORw0KGgo-_w"}}]}]}`,
		wire.Responses: items(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/PNG;charset=utf-8;base64,iVBORw0KGgo-_w"}]}`),
	} {
		tr := translateInto(t, op, wire.Messages, body, nil, false)
		if tr.Err != nil || !strings.Contains(string(tr.Body), `"media_type":"image/png","data":"iVBORw0KGgo+/w=="`) {
			t.Errorf("%v: %v %s", op, tr.Err, tr.Body)
		}
	}
}
