package fakellm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxSkew is how old or early a signature may be.
const maxSkew = 5 * time.Minute

// signed reports whether a request bears a signature of AWS Signature Version 4 by the
// access key, over what has arrived: method, path, query, headers and body.
func signed(r *http.Request, body []byte, keyID, secret string, now time.Time) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return false
	}
	given := map[string]string{}
	for f := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		given[name] = value
	}
	scope := strings.Split(given["Credential"], "/") // key, date, region, service, aws4_request
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || len(scope) != 5 || scope[0] != keyID || scope[3] != "bedrock" || now.Sub(at).Abs() > maxSkew {
		return false
	}
	names := strings.Split(given["SignedHeaders"], ";")
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return false
	}
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	text := strings.Join([]string{
		"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), hash([]byte(canonical(r, names, hash(body)))),
	}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(slices.Clone(scope[1:]), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hmac.Equal([]byte(hex.EncodeToString(key)), []byte(given["Signature"]))
}

// canonical is a request as it is signed. The path is escaped once more than it was
// sent.
func canonical(r *http.Request, names []string, body string) string {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	var b strings.Builder
	b.WriteString(r.Method + "\n" + strings.ReplaceAll(path, "%", "%25") + "\n")
	pairs := strings.Split(query, "&")
	slices.Sort(pairs)
	b.WriteString(strings.Join(pairs, "&") + "\n")
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	b.WriteString("\n" + strings.Join(names, ";") + "\n" + body)
	return b.String()
}
