package config

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// serviceAccount writes the key file of a service account, as its maker's console
// gives it out.
func serviceAccount(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "kid", "client_email": "sluice@p.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestServicesCompile(t *testing.T) {
	const text = `
providers:
  azure: {dialect: openai, service: azure, base_url: https://r.openai.azure.com/openai, api_version: "2024-10-21", login: {tenant: contoso.example, client_id: app, client_secret: "${OPENAI_API_KEY}"}}
  vertex: {dialect: anthropic, service: vertex, project: p-1, location: global, login: {service_account: "file:KEY"}}
  bedrock:
    dialect: openai
    service: bedrock
    location: us-east-1
    drain: {for: 5s}
    api_keys:
      - {name: signed, login: {access_key_id: AKIDEXAMPLE, secret_access_key: "${OPENAI_API_KEY}", session_token: "${ANTHROPIC_API_KEY}"}}
      - {name: bearer, key: "${OPENAI_API_KEY}"}
  converse: {dialect: bedrock, service: bedrock, location: eu-west-1, api_key: "${OPENAI_API_KEY}"}
  invoke: {dialect: anthropic, service: bedrock, login: {access_key_id: AKIDEXAMPLE, secret_access_key: "${OPENAI_API_KEY}"}}
pools:
  p:
    backends:
      - {name: az, provider: azure, model: my-deployment, catalog: gpt-x}
      - {name: vx, provider: vertex, model: claude-x}
      - {name: vx-eu, provider: vertex, model: claude-x, location: eu}
      - {name: br, provider: bedrock, model: openai.gpt-x}
      - {name: cv, provider: converse, model: "anthropic.claude-x-v1:0"}
      - {name: iv, provider: invoke, model: "anthropic.claude-x-v1:0", location: us-west-2}
models:
  m: {pools: [p]}
`
	c, err := Parse("sluice.yaml", []byte(strings.Replace(text, "KEY\"", serviceAccount(t)+"\"", 1)), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	s, err := Compile(c, CompileOptions{Lookup: func(provider, model string) (Known, bool) {
		asked[provider+"/"+model] = true
		return Known{}, false
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"azure/gpt-x", "vertex/claude-x", "bedrock/openai.gpt-x"} {
		if !asked[want] {
			t.Errorf("the catalogue was not asked for %s but for %v", want, asked)
		}
	}
	url := func(b sluice.BackendID, op wire.Operation, model string) string {
		target := s.Targets[b]
		return target.BaseURL.String() + target.At(upstream.Call{Op: op, Model: model}).Path
	}
	got := []string{
		url("az", wire.Chat, "my-deployment"), url("vx", wire.Messages, "claude-x"), url("vx-eu", wire.Messages, "claude-x"), url("br", wire.Chat, "openai.gpt-x"),
		url("cv", wire.Converse, "anthropic.claude-x-v1:0"), url("iv", wire.Messages, "anthropic.claude-x-v1:0"),
	}
	want := []string{
		"https://r.openai.azure.com/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
		"https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/anthropic/models/claude-x:rawPredict",
		"https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/anthropic/models/claude-x:rawPredict",
		"https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions",
		"https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-x-v1%3A0/converse",
		"https://bedrock-runtime.us-west-2.amazonaws.com/model/anthropic.claude-x-v1%3A0/invoke",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	az := s.Targets["az"].Logins["azure"].Entra
	if az.TokenURL != "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token" || az.ClientID != "app" || az.Secret.Reveal() != provKey || az.Scope != azureScope {
		t.Errorf("got the login %+v", az)
	}
	if g := s.Targets["vx"].Logins["vertex"].Google; g.Email != "sluice@p.iam.gserviceaccount.com" || g.KeyID != "kid" || g.TokenURL != googleTokenURL {
		t.Errorf("got the login %+v", g)
	}
	for b, want := range map[sluice.BackendID]upstream.Drain{"az": {}, "vx": {For: 30 * time.Second, Bytes: 4 << 20, AtOnce: 16}, "br": {For: 5 * time.Second, Bytes: 4 << 20, AtOnce: 16}} {
		if got := s.Targets[b].Drain; got != want {
			t.Errorf("%s is drained by %+v, want %+v", b, got, want)
		}
	}
	br := s.Targets["br"]
	if a := br.Logins["bedrock/signed"].AWS; a.KeyID != "AKIDEXAMPLE" || a.Secret.Reveal() != provKey || a.Session.Reveal() != provKey || br.Login.AWS != a {
		t.Errorf("got the login %+v", a)
	}
	if got := br.Keys["bedrock/bearer"].Reveal(); got != provKey {
		t.Errorf("got the key %q", got)
	}
}
