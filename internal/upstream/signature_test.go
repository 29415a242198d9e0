package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice"
	"sluice/internal/wire"
)

// The vendor's published signatures come out of what a call is signed by here.
func TestPublishedSignatures(t *testing.T) {
	data, err := os.ReadFile("testdata/sigv4.txt")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	n := 0
	for block := range strings.SplitSeq(string(data), "\n") {
		if block == "" || strings.HasPrefix(block, "#") || strings.HasPrefix(block, " ") {
			continue
		}
		n++
		f := strings.Fields(block)
		_, rest, _ := strings.Cut(string(data), block+"\n")
		t.Run(f[0], func(t *testing.T) {
			key := AWS{KeyID: "AKIDEXAMPLE", Secret: sluice.NewSecret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")}
			l := vector(t, f[1], f[2], rest, &key)
			if err := l.sign(t.Context(), v4.NewSigner(), &key, signing{"service", "us-east-1", at}); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(l.header.Get("Authorization"), "Signature=")
			if got != f[3] {
				t.Errorf("got the signature %s, want %s", got, f[3])
			}
		})
	}
	if n < 14 {
		t.Errorf("got %d vectors", n)
	}
}

func vector(t *testing.T, method, target, lines string, key *AWS) *letter {
	t.Helper()
	raw, isRaw := strings.CutPrefix(target, "~")
	u, err := url.Parse("https://example.amazonaws.com" + raw)
	if err != nil {
		t.Fatal(err)
	}
	if isRaw {
		u.Opaque = "//" + u.Host + u.Path
	}
	l := &letter{method: method, url: u, header: http.Header{}}
	for line := range strings.SplitSeq(lines, "\n") {
		if !strings.HasPrefix(line, " ") {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimPrefix(value, " "); name {
		case "body":
			l.pieces = [][]byte{[]byte(value)}
		case "session":
			key.Session = sluice.NewSecret(value)
		default:
			l.header.Add(name, value)
		}
	}
	return l
}

// checked recomputes a signature from what has arrived, by the published steps and
// none of the vendor's code.
func checked(r *http.Request, body []byte, secret, service, region string) error {
	auth := r.Header.Get("Authorization")
	_, rest, _ := strings.Cut(auth, "SignedHeaders=")
	names, signature, ok := strings.Cut(rest, ", Signature=")
	if !ok {
		return fmt.Errorf("not signed: %q", auth)
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	pairs := strings.Split(query, "&")
	slices.Sort(pairs)
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + strings.ReplaceAll(unreserved(path), "%2F", "/") + "\n" + strings.Join(pairs, "&") + "\n")
	for name := range strings.SplitSeq(names, ";") {
		value := strings.Join(strings.Fields(strings.Join(r.Header.Values(name), ",")), " ")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		canonical.WriteString(name + ":" + value + "\n")
	}
	hash := sha256.Sum256(body)
	canonical.WriteString("\n" + names + "\n" + hex.EncodeToString(hash[:]))
	mac := func(key []byte, s string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(s))
		return m.Sum(nil)
	}
	at := r.Header.Get("X-Amz-Date")
	hash = sha256.Sum256([]byte(canonical.String()))
	text := "AWS4-HMAC-SHA256\n" + at + "\n" + at[:8] + "/" + region + "/" + service + "/aws4_request\n" + hex.EncodeToString(hash[:])
	key := []byte("AWS4" + secret)
	for _, s := range []string{at[:8], region, service, "aws4_request"} {
		key = mac(key, s)
	}
	if got := hex.EncodeToString(mac(key, text)); got != signature {
		return fmt.Errorf("got the signature %s, want %s of\n%s", signature, got, canonical.String())
	}
	return nil
}

// What is signed is what is sent: of models whose names have a colon or a slash, with
// the client's headers and a body in pieces.
func TestSignedAsSent(t *testing.T) {
	for _, model := range []string{
		"anthropic.claude-x-v1:0", "us.amazon.nova-x", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/ab12",
		"arn:aws:bedrock:eu-west-1:123456789012:custom-model/x.y:3/é +%",
	} {
		t.Run(model, func(t *testing.T) {
			inBubble(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if err := checked(r, body, "secret", "bedrock", "us-east-1"); err != nil {
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, err)
					return
				}
				fmt.Fprint(w, r.RequestURI)
			}, func(t *testing.T, r *rig) {
				r.target = &Target{
					BaseURL: &url.URL{Scheme: "http", Host: "backend"}, Dialect: wire.Anthropic, Service: Bedrock, Location: "us-east-1",
					Login: Login{AWS: AWS{KeyID: "AKID", Secret: sluice.NewSecret("secret"), Session: sluice.NewSecret("token")}},
				}
				a, err := r.client.Do(t.Context(), r.target, Request{
					Path: r.target.At(Call{Op: wire.Messages, Model: model, Stream: true}).Path, Pieces: [][]byte{[]byte(`{"a":`), []byte(`1}`)},
					Header: http.Header{"Accept-Language": {"de,  en"}, "X-Title": {"a", "b"}, "X-Amz-Date": {"19700101T000000Z"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				if a.Status != http.StatusOK {
					t.Fatalf("refused: %s", a.Refusal)
				}
				path, err := a.ReadAll()
				if want := "/model/" + unreserved(model) + "/invoke-with-response-stream"; err != nil || string(path) != want {
					t.Errorf("got the path %s %v, want %s", path, err, want)
				}
			})
		})
	}
}

// A machine whose clock is off signs by the time that the service tells.
func TestClockSkew(t *testing.T) {
	const off = 20 * time.Minute
	calls := 0
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		now := time.Now().Add(off)
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || now.Sub(at).Abs() > 5*time.Minute {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"Signature expired"}`)
		}
	}, func(t *testing.T, r *rig) {
		r.target.Login, r.target.Service = Login{AWS: AWS{KeyID: "AKID", Secret: sluice.NewSecret("s")}}, Bedrock
		for want := 2; want <= 3; want++ {
			a, err := r.do(t.Context(), false)
			if err != nil || a.Status != http.StatusOK || calls != want {
				t.Fatalf("got %v %v after %d calls, want %d", a, err, calls, want)
			}
			a.Close()
		}
	})
}
