package dialect

import (
	"net/http"
	"strings"
)

// betaHeaders are the headers by which clients ask for what a provider tries out.
var betaHeaders = []struct{ header, name string }{
	{"Anthropic-Beta", "anthropic-beta"},
	{"Openai-Beta", "openai-beta"},
}

// fieldBetas are the betas, without their dates, that do no more than permit fields of
// the body or of the answer, which are judged by themselves. Client libraries send
// them with every request that may have such a field.
var fieldBetas = map[string]bool{
	"advanced-tool-use": true, "cache-diagnosis": true, "code-execution": true, "compact": true, "computer-use": true,
	"context-management": true, "effort": true, "extended-cache-ttl": true, "fast-mode": true, "files-api": true,
	"fine-grained-tool-streaming": true, "inline-tools": true, "mcp-client": true, "message-batches": true,
	"mid-conversation-output-config": true, "mid-conversation-system": true, "mid-conversation-system-clear-at": true,
	"mid-conversation-tool-changes": true, "model-context-window-exceeded": true, "output-128k": true, "output-300k": true,
	"pdfs": true, "prompt-caching": true, "skills": true, "structured-outputs": true, "task-budgets": true,
	"thinking-display-updates": true, "thinking-token-count": true, "token-counting": true, "web-fetch": true,
}

// betas asks for each beta that the request's headers name.
func betas(r *Request, header http.Header) {
	for _, h := range betaHeaders {
		for _, v := range header[h.header] {
			for b := range strings.SplitSeq(v, ",") {
				if b = strings.TrimSpace(b); b == "" {
					continue
				}
				feature := FeatureBeta
				if fieldBetas[undated(b)] {
					feature = FeatureBetaField
				}
				r.ask(feature, h.name+":"+clean(b), nil)
			}
		}
	}
}

// undated is a beta's name without the date at its end.
func undated(b string) string {
	const date = len("-2006-01-02")
	if n := len(b) - date; n > 0 && b[n] == '-' && b[n+5] == '-' && b[n+8] == '-' {
		return b[:n]
	}
	return b
}
