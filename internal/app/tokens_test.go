package app

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/internal/auth/jwt/jwttest"
)

const issuerFile = plainFile + `
auth:
  issuers:
    - name: corp
      issuer: ${ISSUER}
      audiences: [sluice]
      claims: {tenant: "{org}", user: "{email}", class: {from: "{groups}", map: {llm-batch: batch}}}
`

// A token of an issuer is taken in each dialect's header, and what it is mapped to applies.
func TestTokens(t *testing.T) {
	t.Parallel()
	issuer := jwttest.New("")
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.URL = server.URL
	issuer.Add(t, "k1", "RS256")
	b := newBench(t)
	b.env["ISSUER"] = server.URL
	b.write(issuerFile)
	b.start()
	token := func(change map[string]any) string {
		c := map[string]any{
			"iss": issuer.URL, "aud": "sluice", "sub": "alice", "org": "acme", "email": "alice@acme.test", "groups": []string{"llm-batch"},
			"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		}
		maps.Copy(c, change)
		return issuer.Sign(t, "k1", c)
	}
	const chat = `{"model":"sim-small","max_tokens":3,"user":"someone-else","messages":[{"role":"user","content":"x"}]}`
	const content = `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":3}}`
	calls := []struct{ name, path, header, body string }{
		{"OpenAI", "/v1/chat/completions", "Authorization", chat},
		{"Anthropic", "/v1/messages", "X-Api-Key", strings.Replace(chat, `"user":"someone-else",`, "", 1)},
		{"Gemini", "/v1beta/models/sim-small:generateContent", "X-Goog-Api-Key", content},
	}
	send := func(path, header, credential, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.app.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if header == "Authorization" {
			credential = "Bearer " + credential
		}
		r.Header.Set(header, credential)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text := new(strings.Builder)
		if err := res.Write(text); err != nil {
			t.Fatal(err)
		}
		return res, text.String()
	}
	for _, c := range calls {
		res, text := send(c.path, c.header, token(nil), c.body)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", c.name, text)
		}
		got := b.explained(res.Header.Get("Sluice-Request-Id"))
		for name, want := range map[string]string{"key": "jwt:corp:alice", "user": "alice@acme.test", "class": "batch", "tenant": "acme"} {
			if got[name] != want {
				t.Errorf("%s: %s is %v, want %s: %v", c.name, name, got[name], want, got)
			}
		}
		res, text = send(c.path, c.header, token(map[string]any{"aud": "other"}), c.body)
		if res.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "another audience") {
			t.Errorf("%s for another audience: %s", c.name, text)
		}
		res, text = send(c.path, c.header, token(map[string]any{"org": "nobody"}), c.body)
		if res.StatusCode != http.StatusForbidden || !strings.Contains(text, `tenant \"nobody\", which does not exist`) {
			t.Errorf("%s of no tenant: %s", c.name, text)
		}
	}
	// A class that the token does not give is not had by asking.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.app.Addr()+calls[0].path, strings.NewReader(chat))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token(nil))
	r.Header.Set("Sluice-Class", "interactive")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a higher class gave %d", res.StatusCode)
	}
	// A reload takes issuers away.
	b.write(plainFile)
	if err := b.app.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, text := send(calls[0].path, calls[0].header, token(nil), chat); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without issuers: %s", text)
	}
	if res, text := send(calls[0].path, calls[0].header, b.key, chat); res.StatusCode != http.StatusOK {
		t.Errorf("with a key: %s", text)
	}
}

// explained is what the admin API tells of a request.
func (b *bench) explained(id string) map[string]any {
	b.t.Helper()
	status, body := b.admin(http.MethodGet, "/admin/v1/requests/"+id)
	if status != http.StatusOK {
		b.t.Fatalf("request %s cannot be explained: %d %v", id, status, body)
	}
	return body
}
