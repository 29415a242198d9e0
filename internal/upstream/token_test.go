package upstream

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// issuer is a token endpoint and a backend that takes its tokens, in one.
type issuer struct {
	asked  atomic.Int64
	life   time.Duration                  // of tokens
	answer func(http.ResponseWriter) bool // in place of a token; nil, or false, gives one
	form   func(url.Values) error
	taken  func(token string) bool // whether the backend takes it; nil takes all
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/token" {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || i.taken != nil && !i.taken(token) {
			w.WriteHeader(http.StatusUnauthorized)
		} else {
			fmt.Fprint(w, token)
		}
		return
	}
	n := i.asked.Add(1)
	if i.answer != nil && i.answer(w) {
		return
	}
	if err := r.ParseForm(); err == nil && i.form != nil {
		if err := i.form(r.Form); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"token_type":"Bearer","access_token":"token-%d","expires_in":%d}`, n, int(i.life.Seconds()))
}

var entra = Login{Entra: Entra{TokenURL: "http://backend/token", ClientID: "app", Secret: sluice.NewSecret("s3cret"), Scope: "scope/.default"}}

// login is what a call with the target's login gets.
func (r *rig) login(t *testing.T, ctx context.Context) (string, error) {
	t.Helper()
	a, err := r.do(ctx, false)
	if err != nil {
		return "", err
	}
	defer a.Close()
	if a.Status != http.StatusOK {
		return "", fmt.Errorf("status %d", a.Status)
	}
	b, err := a.ReadAll()
	return string(b), err
}

func withTokens(t *testing.T, i *issuer, f func(t *testing.T, r *rig)) {
	inBubble(t, i.ServeHTTP, func(t *testing.T, r *rig) {
		r.target.Service, r.target.AllowPrivate, r.target.Login = Azure, true, entra
		f(t, r)
	})
}

// A token is got once for all that wait, kept, and renewed before it ends, while calls
// go on with the one that is good.
func TestTokenIsSharedAndRenewedEarly(t *testing.T) {
	i := &issuer{life: time.Hour, form: func(v url.Values) error {
		if v.Get("client_id") != "app" || v.Get("client_secret") != "s3cret" || v.Get("scope") != "scope/.default" || v.Get("grant_type") != "client_credentials" {
			return fmt.Errorf("got the form %v", v)
		}
		return nil
	}}
	slow := time.Second
	i.answer = func(http.ResponseWriter) bool { time.Sleep(slow); return false }
	withTokens(t, i, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if got, err := r.login(t, t.Context()); got != "token-1" || err != nil {
					t.Errorf("got %q %v", got, err)
				}
			})
		}
		wg.Wait()
		time.Sleep(54 * time.Minute)
		if got, err := r.login(t, t.Context()); got != "token-1" || err != nil || i.asked.Load() != 1 {
			t.Errorf("after 54m: got %q %v, %d tokens", got, err, i.asked.Load())
		}
		time.Sleep(90 * time.Second)
		began := time.Now()
		if got, err := r.login(t, t.Context()); got != "token-1" || err != nil || time.Since(began) > 0 {
			t.Errorf("as it is renewed: got %q %v after %v", got, err, time.Since(began))
		}
		time.Sleep(2 * slow)
		if got, err := r.login(t, t.Context()); got != "token-2" || err != nil || i.asked.Load() != 2 {
			t.Errorf("renewed: got %q %v, %d tokens", got, err, i.asked.Load())
		}
	})
}

// A token endpoint that fails is asked no more than its rests allow, its failure is one
// of the credential, and it is forgotten once there is a token.
func TestTokenEndpointFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter) bool
		what   string
	}{
		{"down", func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }, "does not answer"},
		{"503", func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusServiceUnavailable); return true }, "endpoint fails"},
		{"401", func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return true
		}, "refuses the login"},
		{"no token", func(w http.ResponseWriter) bool { fmt.Fprint(w, `{}`); return true }, "no token"},
		{"redirect", func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "http://backend/token")
			w.WriteHeader(307)
			return true
		}, "no token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := &issuer{life: time.Hour}
			var well atomic.Bool
			i.answer = func(w http.ResponseWriter) bool { return !well.Load() && tt.answer(w) }
			withTokens(t, i, func(t *testing.T, r *rig) {
				for range 10 {
					_, err := r.login(t, t.Context())
					if e := wantReason(t, err, sluice.UpstreamRefused); !e.Credential || e.Sent || !strings.Contains(e.What, tt.what) || strings.Contains(err.Error(), "s3cret") {
						t.Errorf("got %+v", e)
					}
				}
				if n := i.asked.Load(); n != 1 {
					t.Errorf("the endpoint was asked %d times", n)
				}
				well.Store(true)
				time.Sleep(tokenRest)
				if got, err := r.login(t, t.Context()); got != "token-2" || err != nil {
					t.Errorf("once it is well: got %q %v", got, err)
				}
			})
		})
	}
}

// Who waits for a slow token endpoint leaves at once, with nothing sent, and others go on
// waiting for the same token; nobody waits for longer than the bound.
func TestSlowTokenEndpoint(t *testing.T) {
	i := &issuer{life: time.Hour}
	i.answer = func(http.ResponseWriter) bool {
		if i.asked.Load() == 1 {
			time.Sleep(time.Minute)
		}
		return false
	}
	withTokens(t, i, func(t *testing.T, r *rig) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.login(t, ctx); !errors.Is(err, ErrUnsent) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		_, err := r.login(t, t.Context())
		if wantReason(t, err, sluice.UpstreamRefused); time.Since(began) != tokenWait {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		time.Sleep(tokenRest)
		if got, err := r.login(t, t.Context()); got != "token-2" || err != nil {
			t.Errorf("got %q %v", got, err)
		}
	})
}

// A backend that refuses a token that was good gets the next one, once.
func TestRefusedTokenIsRenewed(t *testing.T) {
	var revoked atomic.Int64
	calls := 0
	i := &issuer{life: time.Hour, taken: func(token string) bool {
		calls++
		return token > fmt.Sprintf("token-%d", revoked.Load())
	}}
	withTokens(t, i, func(t *testing.T, r *rig) {
		if got, err := r.login(t, t.Context()); got != "token-1" || err != nil {
			t.Errorf("got %q %v", got, err)
		}
		revoked.Store(1)
		if got, err := r.login(t, t.Context()); got != "token-2" || err != nil || calls != 3 {
			t.Errorf("got %q %v after %d calls", got, err, calls)
		}
		revoked.Store(9)
		if _, err := r.login(t, t.Context()); err == nil || err.Error() != "status 401" || calls != 5 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})
}

// Closing ends the call of a token endpoint that hangs.
func TestCloseEndsTokenCalls(t *testing.T) {
	i := &issuer{life: time.Hour, answer: func(http.ResponseWriter) bool { time.Sleep(time.Minute); return false }}
	withTokens(t, i, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = r.login(t, ctx)
		began := time.Now()
		if r.client.Close(); time.Since(began) > 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		if _, err := r.login(t, t.Context()); err == nil {
			t.Error("a token was got after the end")
		}
	})
}

// A service account's assertion is what Google asks for.
func TestServiceAccount(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{life: time.Hour, form: func(v url.Values) error {
		parts := strings.Split(v.Get("assertion"), ".")
		if v.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
			return fmt.Errorf("got the form %v", v)
		}
		hash := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, hash[:], signature); err != nil {
			return err
		}
		var head, claims map[string]any
		for part, into := range map[string]*map[string]any{parts[0]: &head, parts[1]: &claims} {
			text, _ := base64.RawURLEncoding.DecodeString(part)
			if err := json.Unmarshal(text, into); err != nil {
				return err
			}
		}
		now := float64(time.Now().Unix())
		if head["alg"] != "RS256" || head["kid"] != "kid" || claims["iss"] != "a@p" || claims["aud"] != "http://backend/token" || claims["scope"] != googleScope ||
			claims["iat"].(float64) > now || claims["exp"].(float64) > now+3600 || claims["exp"].(float64) <= now {
			return fmt.Errorf("got %v %v", head, claims)
		}
		return nil
	}}
	inBubble(t, i.ServeHTTP, func(t *testing.T, r *rig) {
		pemKey := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		r.target.Service, r.target.Dialect = Vertex, wire.Anthropic
		r.target.Login = Login{Google: Google{Email: "a@p", KeyID: "kid", Key: sluice.NewSecret(pemKey), TokenURL: "http://backend/token"}}
		if got, err := r.login(t, t.Context()); got != "token-1" || err != nil {
			t.Errorf("got %q %v", got, err)
		}
	})
}

// Each login has its own token, and a plain key beside them its own header.
func TestLoginsByName(t *testing.T) {
	i := &issuer{life: time.Hour}
	withTokens(t, i, func(t *testing.T, r *rig) {
		other := entra
		other.Entra.ClientID = "other"
		r.target.Logins = map[string]Login{"az/a": entra, "az/b": other}
		r.target.Keys = map[string]sluice.Secret{"az/c": sluice.NewSecret("plain")}
		for key, want := range map[string]string{"az/a": "Bearer token-", "az/b": "Bearer token-", "az/c": "", "": "Bearer token-"} {
			l := r.target.letter(&Request{Path: "/x"})
			if err := r.client.authenticate(t.Context(), r.target, key, l); err != nil {
				t.Fatal(err)
			}
			if got := l.header.Get("Authorization"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
				t.Errorf("%s: got %q, want %q", key, got, want)
			}
			if got := l.header.Get("Api-Key"); (got == "plain") != (key == "az/c") {
				t.Errorf("%s: got the key %q", key, got)
			}
		}
		if n := i.asked.Load(); n != 2 {
			t.Errorf("got %d tokens", n)
		}
	})
}
