package docs

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/internal/auth/jwt/jwttest"
)

// TestAuth follows docs/auth.md with an issuer in this process: its configuration is put
// in force as it stands there, but for the issuer's address, and its commands are run.
func TestAuth(t *testing.T) {
	t.Parallel()
	issuer := jwttest.New("")
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.URL = server.URL
	issuer.Add(t, "k1", "ES256")
	f := follow(t, "auth.md")
	f.write("token.txt", issuer.Sign(t, "k1", map[string]any{
		"iss": issuer.URL, "aud": "sluice", "sub": "u-1", "exp": time.Now().Add(time.Hour).Unix(), "org": map[string]string{"id": "o-17"},
		"email": "ada@acme.test", "email_verified": true, "department": "search", "groups": []string{"all", "llm-users", "llm-batch"},
	}))
	declared := f.yaml()
	if !strings.Contains(declared, "https://login.example.com") {
		t.Fatal("the page's issuer is another")
	}
	f.write("sluice.yaml", plainGateway+`
plans: {gold: {class: interactive}}
tenants: {acme: {plan: gold, projects: {search: {}}}, globex: {}}
`+strings.Replace(declared, "https://login.example.com", server.URL, 1))
	f.run("is valid, version", "admitted", "jwt:corp:u-1", "batch", "tenant by {org.id}", // explain
		"chat.completion", // the answer
		"acme")            // usage
}
