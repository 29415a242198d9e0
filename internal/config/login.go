package config

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/upstream"
)

// Login is a credential that is more than one secret: what its service's own tools
// call by the same names.
type Login struct {
	AccessKeyID     string  `json:"access_key_id,omitempty" jsonschema:"bedrock: of the access key that signs each call"`
	SecretAccessKey *Secret `json:"secret_access_key,omitempty" jsonschema:"bedrock: its secret"`
	SessionToken    *Secret `json:"session_token,omitempty" jsonschema:"bedrock: of temporary credentials"`

	ServiceAccount *Secret `json:"service_account,omitempty" jsonschema:"vertex: a service account's key, the whole JSON file: file:/path"`

	Tenant       string  `json:"tenant,omitempty" jsonschema:"azure: the Entra tenant, by its id or domain"`
	ClientID     string  `json:"client_id,omitempty" jsonschema:"azure: the application's id there"`
	ClientSecret *Secret `json:"client_secret,omitempty" jsonschema:"azure: its secret"`
	Scope        string  `json:"scope,omitempty" jsonschema:"azure: what the token is for; https://cognitiveservices.azure.com/.default if left out"`
	TokenURL     string  `json:"token_url,omitempty" jsonschema:"azure, vertex: the token endpoint, where it is not the public one: of a national cloud, or behind a proxy"`
}

// azureScope is what an Entra token is for where nothing else is said.
const azureScope = "https://cognitiveservices.azure.com/.default"

// loginFields are the fields of a login that each service needs, and those that it
// may have.
var loginFields = map[Service]struct{ needs, may []string }{
	ServiceAzure:   {[]string{"tenant", "client_id", "client_secret"}, []string{"scope", "token_url"}},
	ServiceVertex:  {[]string{"service_account"}, []string{"token_url"}},
	ServiceBedrock: {[]string{"access_key_id", "secret_access_key"}, []string{"session_token"}},
}

// given names the fields of a login that are.
func (l *Login) given() []string {
	var out []string
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"access_key_id", l.AccessKeyID != ""},
		{"secret_access_key", l.SecretAccessKey != nil},
		{"session_token", l.SessionToken != nil},
		{"service_account", l.ServiceAccount != nil},
		{"tenant", l.Tenant != ""},
		{"client_id", l.ClientID != ""},
		{"client_secret", l.ClientSecret != nil},
		{"scope", l.Scope != ""},
		{"token_url", l.TokenURL != ""},
	} {
		if f.is {
			out = append(out, f.name)
		}
	}
	return out
}

// visit calls f for each secret of a login, which may be nil.
func (l *Login) visit(path string, f func(path string, s *Secret)) {
	if l == nil {
		return
	}
	f(join(path, "secret_access_key"), l.SecretAccessKey)
	f(join(path, "session_token"), l.SessionToken)
	f(join(path, "service_account"), l.ServiceAccount)
	f(join(path, "client_secret"), l.ClientSecret)
}

// accountKey is what of a service account's key is used.
type accountKey struct {
	Type     string `json:"type"`
	Email    string `json:"client_email"`
	KeyID    string `json:"private_key_id"`
	Key      string `json:"private_key"`
	TokenURL string `json:"token_uri"`
}

const googleTokenURL = "https://oauth2.googleapis.com/token"

// account reads a service account's key; what is wrong with it is empty if nothing is.
func (l *Login) account() (k accountKey, wrong string) {
	if json.Unmarshal([]byte(l.ServiceAccount.Reveal()), &k) != nil {
		return k, "is not JSON"
	}
	block, _ := pem.Decode([]byte(k.Key))
	switch {
	case k.Type != "service_account":
		return k, "is not the key of a service account: its type is not service_account"
	case k.Email == "":
		return k, "has no client_email"
	case block == nil:
		return k, "has no private_key in PEM"
	}
	if k.TokenURL == "" {
		k.TokenURL = googleTokenURL
	}
	return k, ""
}

// upstream is the login as calls are authenticated by it.
func (l *Login) upstream() (out upstream.Login) {
	switch {
	case l.AccessKeyID != "":
		out.AWS = upstream.AWS{KeyID: l.AccessKeyID, Secret: l.SecretAccessKey.Secret}
		if l.SessionToken != nil {
			out.AWS.Session = l.SessionToken.Secret
		}
	case l.ServiceAccount != nil:
		k, _ := l.account()
		out.Google = upstream.Google{Email: k.Email, KeyID: k.KeyID, Key: sluice.NewSecret(k.Key), TokenURL: cmp.Or(l.TokenURL, k.TokenURL)}
	case l.ClientSecret != nil:
		out.Entra = upstream.Entra{
			TokenURL: cmp.Or(l.TokenURL, "https://login.microsoftonline.com/"+url.PathEscape(l.Tenant)+"/oauth2/v2.0/token"),
			ClientID: l.ClientID, Secret: l.ClientSecret.Secret, Scope: cmp.Or(l.Scope, azureScope),
		}
	}
	return out
}

// login reports a login that its service does not take.
func (v *validator) login(path string, s Service, l *Login, one *Secret, many []APIKey) {
	if l != nil {
		at := join(path, "login")
		if one != nil || len(many) > 0 {
			v.fail(at, "write one of them, or several under api_keys", "there is an api_key too")
		}
		v.loginFields(at, s, l)
	}
	for i := range many {
		if many[i].Login != nil {
			v.loginFields(join(index(join(path, "api_keys"), i), "login"), s, many[i].Login)
		}
	}
}

func (v *validator) loginFields(path string, s Service, l *Login) {
	fields := loginFields[s]
	given := l.given()
	for _, name := range given {
		if !slices.Contains(fields.needs, name) && !slices.Contains(fields.may, name) {
			v.fail(join(path, name), "write "+strings.Join(fields.needs, ", "), "is not of a login of %s", s)
		}
	}
	for _, name := range fields.needs {
		if !slices.Contains(given, name) && !v.broken[join(path, name)] {
			v.fail(path, "write "+strings.Join(fields.needs, ", "), "a login of %s needs %s", s, name)
		}
	}
	if l.ServiceAccount != nil && s == ServiceVertex && !v.rehearsal {
		if _, wrong := l.account(); wrong != "" {
			v.fail(join(path, "service_account"), "write file: and the path of the key's JSON file", "%s", wrong)
		}
	}
	if l.TokenURL != "" {
		v.baseURL(join(path, "token_url"), l.TokenURL)
	}
}
