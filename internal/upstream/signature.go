package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice"
)

// signedService is what the signature says it is for.
const signedService = "bedrock"

// sign signs a call by AWS Signature Version 4: its method, path, query, headers and
// body as they are sent. Nothing of it may change afterwards.
func (c *Client) sign(ctx context.Context, t *Target, a *AWS, l *letter) error {
	l.signed = c.clocks.now(t.BaseURL.Host)
	return l.sign(ctx, c.signer(a), a, signing{service: signedService, region: t.Location, at: l.signed})
}

// signer is the one of an access key. A secret that is mended under the same id has
// another: what the old one's has derived is not of it.
func (c *Client) signer(a *AWS) *v4.Signer {
	key := *a
	key.Session = sluice.Secret{} // what is derived is not of it
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.signers[key]
	if !ok {
		if len(c.signers) >= maxSigners {
			clear(c.signers)
		}
		s = v4.NewSigner()
		c.signers[key] = s
	}
	return s
}

// maxSigners bounds the signers that are kept.
const maxSigners = 256

// signing is what a signature is for.
type signing struct {
	service, region string
	at              time.Time
}

func (l *letter) sign(ctx context.Context, signer *v4.Signer, a *AWS, as signing) error {
	body := sha256.New()
	size := int64(0)
	for _, p := range l.pieces {
		body.Write(p)
		size += int64(len(p))
	}
	r := &http.Request{Method: l.method, URL: l.url, Host: l.url.Host, Header: l.header, ContentLength: size}
	key := aws.Credentials{AccessKeyID: a.KeyID, SecretAccessKey: a.Secret.Reveal(), SessionToken: a.Session.Reveal()}
	if err := signer.SignHTTP(ctx, key, r, hex.EncodeToString(body.Sum(nil)), as.service, as.region, as.at); err != nil {
		return &Error{Reason: sluice.UpstreamRefused, Credential: true, What: "the call could not be signed", Err: err}
	}
	return nil
}

// maxSkew is how far a clock may be off: the vendor allows five minutes.
const maxSkew = 4 * time.Minute

// clocks is how far those of the hosts are off from this machine's.
type clocks struct {
	mu   sync.Mutex
	skew map[string]time.Duration // by host; of those that were off by too much once
}

// now is the time at a host.
func (c *clocks) now(host string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew[host])
}

// set takes the date of an answer to a call that was signed at a time. It reports
// whether that was too far off.
func (c *clocks) set(host string, signed time.Time, date string) bool {
	at, err := http.ParseTime(date)
	if err != nil || at.Sub(signed).Abs() < maxSkew {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skew == nil {
		c.skew = make(map[string]time.Duration)
	}
	c.skew[host] = time.Until(at)
	return true
}
