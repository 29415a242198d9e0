package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"net/http"
	"slices"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// Key is which answer: a full HMAC-SHA-256 with the secret of the installation over all
// that the answer depends on. Nothing else finds an entry, and it is never cut.
type Key [sha256.Size]byte

// String is the key in hexadecimal, all of it.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Owner is whose entries they are: a tenant's, or those of tenants that share.
type Owner struct {
	Group string          // empty for a tenant by itself
	ID    sluice.TenantID // empty for a group
}

// String names the owner for people: the tenant, or "group:NAME".
func (o Owner) String() string {
	if o.Group != "" {
		return "group:" + o.Group
	}
	return string(o.ID)
}

// scope is the owner's name in stores: a full hash, so that no name of a tenant, whatever
// it has in it, is a path or meets another's.
func (o Owner) scope(secret []byte) string {
	f := newFields(secret, "owner")
	f.text(o.Group)
	f.text(string(o.ID))
	return hex.EncodeToString(f.hash().Sum(nil))
}

// version of keys: what they are made of and how. A change of either raises it.
const keyVersion = "sluice output cache 1"

// fields is a hash of fields, each behind its length, so that no two lists of fields run
// into the same bytes.
type fields struct {
	h hash.Hash
	b []byte // not written yet
}

func newFields(secret []byte, of string) *fields {
	f := &fields{h: hmac.New(sha256.New, secret), b: make([]byte, 0, 256)}
	f.text(keyVersion)
	f.text(of)
	return f
}

func (f *fields) text(s string) {
	f.number(int64(len(s)))
	f.b = append(f.b, s...)
}

func (f *fields) number(n int64) { f.b = binary.AppendVarint(f.b, n) }

func (f *fields) flag(v bool) {
	n := int64(0)
	if v {
		n = 1
	}
	f.number(n)
}

// hash is what the fields are written into, all that there are by now.
func (f *fields) hash() hash.Hash {
	_, _ = f.h.Write(f.b)
	f.b = f.b[:0]
	return f.h
}

func texts[T ~string](f *fields, list []T) {
	f.number(int64(len(list)))
	for _, s := range list {
		f.text(string(s))
	}
}

// keyOf is the key of a request that may be kept, under a version of the routing table.
// The error is that of a body that is too large for one.
func keyOf(secret []byte, o Owner, r *exchange.Request, policy string) (key Key, err error) {
	f := newFields(secret, "answer")
	f.text(o.Group)
	f.text(string(o.ID))
	f.text(policy)
	h := r.Head
	f.text(h.Op.String())
	f.text(h.Model)
	f.flag(h.Stream)
	f.flag(h.IncludeUsage) // what the client gets of a stream differs
	f.flag(h.ContinuousUsage)
	underPolicy(f, r)
	headers(f, r.Header)
	if err := hashJSON(f.hash(), r.Body, skips(h.Op)); err != nil {
		return key, err
	}
	f.h.Sum(key[:0])
	return key, nil
}

// underPolicy is what of the caller's policy decides where a request goes and what is
// asked for it. Where hooks look into it, so does what they are told.
func underPolicy(f *fields, r *exchange.Request) {
	p := r.Principal.Policy
	f.text(r.Label().String())
	texts(f, p.Regions)
	texts(f, p.Providers)
	texts(f, p.Hooks)
	f.number(int64(p.MaxOutput))
	f.number(int64(p.OutputCeiling))
	f.flag(p.WarnDropped)
	f.flag(p.FetchMedia)
	f.flag(p.HardSpend) // a bound is named where the client names none
	f.flag(p.CachePerUser)
	if p.CachePerUser {
		f.text(string(r.Principal.User))
	}
	f.flag(r.Hooked())
	if r.Hooked() {
		f.text(string(r.Principal.Tenant))
		f.text(string(r.Principal.Project))
		f.text(r.Task)
	}
}

// harmless are headers that backends get and that change no answer. All others that go to
// a backend are in the key.
var harmless = map[string]bool{
	"Accept": true, "User-Agent": true, "X-Title": true, "X-Request-Id": true, "X-Client-Request-Id": true, "Cache-Control": true, "Pragma": true, "Priority": true,
}

func headers(f *fields, client http.Header) {
	sent := wire.RequestHeader(client)
	maps.DeleteFunc(sent, func(name string, _ []string) bool { return harmless[name] })
	names := slices.Sorted(maps.Keys(sent))
	f.number(int64(len(names)))
	for _, name := range names {
		f.text(name)
		texts(f, sent[name])
	}
}

// labels are top-level members that say who asks, or how an answer is to be sent, and not
// what is answered; whether it is streamed is in the key as a flag. Where the plan says per_user, the end user is in the key by itself.
var labels = map[string]bool{"user": true, "safety_identifier": true, "metadata": true, "stream": true, "stream_options": true, "prompt_cache_key": true, "prompt_cache_retention": true}

// skips is which members of a request's body are not in the key. The answers of Responses
// repeat the request's own members, so that none but the stream's options is left out.
func skips(op wire.Operation) func(string) bool {
	if op == wire.Responses {
		return func(name string) bool { return name == "stream" || name == "stream_options" }
	}
	return func(name string) bool { return labels[name] }
}
