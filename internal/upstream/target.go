package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/price"
	"sluice/internal/wire"
)

// AnthropicVersion is sent to backends of that dialect where the client named
// none.
const AnthropicVersion = "2023-06-01"

// Target is where a backend is and how it is called. It is immutable once it is
// in use.
type Target struct {
	// BaseURL is what operation paths are appended to, such as
	// https://api.openai.com/v1. It has no query, fragment or user.
	BaseURL *url.URL
	// APIKey is sent in the header that Service or Dialect has for it. An empty one is
	// not sent.
	APIKey sluice.Secret
	// Keys are sent in its place to requests that name one of them.
	Keys map[string]sluice.Secret
	// Login authenticates in place of APIKey, and those of Logins requests that name one
	// of them. A name is in Keys or in Logins.
	Login   Login
	Logins  map[string]Login
	Dialect wire.Dialect
	// Service is the cloud that it is reached through, and Project, Location and
	// APIVersion what its addresses and signatures name.
	Service                       Service
	Project, Location, APIVersion string
	// Engine names the server where it is known ("vllm", "sglang", "tgi", "llamacpp",
	// "ollama"); empty for a hosted provider.
	Engine string
	// Quirks is what the provider wants in another way than its dialect says.
	Quirks wire.Quirks
	// MetricsEvery is how often the server is asked for its own load, and that its
	// answers are to tell of it; 0 does neither.
	MetricsEvery time.Duration
	// SaltKey is what tenants' salts of an engine's prefix cache are made of; an
	// empty one sends none.
	SaltKey sluice.Secret
	// Header is added to every request, such as an organization.
	Header http.Header
	// AllowPrivate lets the host resolve to private addresses. A BaseURL that
	// is itself spelt as one needs no leave.
	AllowPrivate bool
	Timeouts     Timeouts
	// Probe is how it is asked for its health outside of requests.
	Probe Probe
	// Served is the price of a model that the provider says it served in place of the
	// one that was asked for; nil, or its answer, where that is not known.
	Served func(model string) *price.Row
	// Drain bounds how an answer is read to its end whose client has left; zero cuts it.
	Drain Drain
	// HandOver is when lines of batches go to the provider's own batch API.
	HandOver HandOver
	// ChargeReported charges what the provider says that an answer has cost, where it
	// says so, and not what prices say.
	ChargeReported bool
	// LostBound charges an attempt of which nothing ever became known at its
	// bound, not at the estimate.
	LostBound bool
}

// Probe is what is asked for with GET at a target's host, and how often; a zero one
// asks nothing.
type Probe struct {
	Path  string
	Every time.Duration
}

// Drain bounds what is read after a client has left, of a backend that generates, and
// bills, its answer to the end all the same.
type Drain struct {
	For    time.Duration // of one answer
	Bytes  int64         // of one stream
	AtOnce int           // answers of one provider
}

// HandOver says when lines of a batch go to a provider's own batch API.
type HandOver struct {
	On         bool
	LeastLines int           // that are open of the batch
	Window     time.Duration // that the provider may take
	Slack      time.Duration // that is left of the batch's time then, for what the provider has not done
}

// Timeouts bounds the stages of one attempt. Zero fields take the defaults of
// DefaultTimeouts; a negative one switches its bound off, but for Connect.
type Timeouts struct {
	Connect    time.Duration // look-up and connect
	Headers    time.Duration // from the send to the headers of a stream
	FirstToken time.Duration // from the send to the first content of a stream
	Idle       time.Duration // between two events of a stream
	Total      time.Duration // from the send to the end
	Rate       int64         // least tokens per second of a stream; 0 is no bound
	Window     time.Duration // over which Rate counts
}

// DefaultTimeouts are generous: a model that thinks may be silent for minutes.
var DefaultTimeouts = Timeouts{
	Connect:    egress.DefaultConnect,
	Headers:    time.Minute,
	FirstToken: 10 * time.Minute,
	Idle:       time.Minute,
	Total:      30 * time.Minute,
	Window:     10 * time.Second,
}

func (t Timeouts) withDefaults() Timeouts {
	d := DefaultTimeouts
	pick := func(v, def time.Duration) time.Duration {
		if v == 0 {
			return def
		}
		return v
	}
	return Timeouts{
		Connect:    pick(max(t.Connect, 0), d.Connect),
		Headers:    pick(t.Headers, d.Headers),
		FirstToken: pick(t.FirstToken, d.FirstToken),
		Idle:       pick(t.Idle, d.Idle),
		Total:      pick(t.Total, d.Total),
		Rate:       t.Rate,
		Window:     pick(max(t.Window, 0), d.Window),
	}
}

// Longest is how long an attempt can last, and Silence how long a stream can show
// no content, by bounds that may be left out. One that is switched off counts as a
// day.
func (t Timeouts) Longest() time.Duration { return orDay(t.withDefaults().Total) }

// Silence is explained at Longest.
func (t Timeouts) Silence() time.Duration {
	t = t.withDefaults()
	return min(max(orDay(t.FirstToken), orDay(t.Idle)), orDay(t.Total))
}

func orDay(d time.Duration) time.Duration {
	if d <= 0 {
		return 24 * time.Hour
	}
	return d
}

// ContinuousUsage reports whether the backend can tell usage in every event, so
// that it is exact at a cut.
func (t *Target) ContinuousUsage() bool { return t.Engine == "vllm" || t.Engine == "sglang" }

// Salted reports whether an engine takes a cache_salt in requests of the OpenAI dialect.
// SGLang has heeded it since the spring of 2026; before that it took it for nothing.
func Salted(engine string) bool { return engine == "vllm" || engine == "sglang" }

// CacheSalt is what the engine sets the prompts of a tenant apart by in its prefix
// cache; empty where it is sent none.
func (t *Target) CacheSalt(id sluice.TenantID) string {
	if t.SaltKey.Empty() || !Salted(t.Engine) || t.Dialect != wire.OpenAI {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(t.SaltKey.Reveal()))
	mac.Write([]byte("cache_salt\x00" + id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// KeepsBody reports whether a request's body may still be read after its answer has
// been closed: net/http's transport has goroutines of its own, and they do not say
// when they are done.
func (t *Target) KeepsBody() bool { return t.BaseURL.Scheme != "http" }

// LegacyMaxTokens reports whether the backend may know an output bound by the name
// max_tokens alone, and would silently ignore another: an engine of which the
// opposite is not known.
func (t *Target) LegacyMaxTokens() bool { return t.Engine != "" && !t.ContinuousUsage() }

// Validate says what is wrong with the target and how to mend it.
func (t *Target) Validate() error {
	u := t.BaseURL
	switch {
	case u == nil:
		return fmt.Errorf("base_url is missing: write one such as https://api.openai.com/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("base_url %q must start with https:// or http://", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("base_url %q has no host", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("base_url %q has credentials: put the key in api_key", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("base_url %q has a query or fragment: end it at the version, such as /v1", u.Redacted())
	case ofDialect[t.Dialect] == scheme{}:
		return fmt.Errorf("dialect %q is unknown: use openai, anthropic or bedrock", t.Dialect)
	}
	return nil
}

// secret is the credential of a name, else the target's own.
func (t *Target) secret(key string) sluice.Secret {
	if s, ok := t.Keys[key]; ok {
		return s
	}
	return t.APIKey
}

func (t *Target) transport() egress.TransportOptions {
	return egress.TransportOptions{
		AllowPrivate: t.AllowPrivate || egress.NamesPrivate(t.BaseURL.Hostname()),
		Connect:      t.Timeouts.withDefaults().Connect,
	}
}
