package config

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"sluice"
	"sluice/internal/auth/jwt"
	"sluice/internal/egress"
)

// Auth is who is let in beside keys.
type Auth struct {
	Issuers []Issuer `json:"issuers,omitempty" jsonschema:"whose signed tokens (JWT, OpenID Connect) are taken in the place of keys"`
}

// Issuer is whose tokens are taken.
type Issuer struct {
	Name         string      `json:"name,omitempty" jsonschema:"here: in the ledger, where a token's key is jwt:NAME:SUBJECT, in the log and in metrics; the host of issuer if left out"`
	Issuer       string      `json:"issuer" jsonschema:"its address, as it stands in iss"`
	Audiences    []string    `json:"audiences" jsonschema:"of which a token must name one in aud"`
	JWKSURL      string      `json:"jwks_url,omitempty" jsonschema:"where its keys are; its discovery document says it if left out"`
	AllowPrivate bool        `json:"allow_private,omitempty" jsonschema:"let its names resolve to private addresses"`
	Algorithms   []Algorithm `json:"algorithms,omitempty" jsonschema:"that it may sign with; RS256, ES256 and EdDSA if left out"`

	Leeway   Duration `json:"leeway,omitempty" jsonschema:"by which its clock may differ from this one, at most 5m"`
	Refresh  Duration `json:"refresh,omitempty" jsonschema:"how often its keys are fetched, 1m to 24h: a key that it takes back is refused after that"`
	StaleMax Duration `json:"stale_max,omitempty" jsonschema:"how long its keys stay good while it does not answer; for ever if 0"`

	Require map[string]Names `json:"require,omitempty" jsonschema:"claims that a token must have, with one of the values; with any where the list is empty. Of a claim that is a list one item is enough"`
	Claims  Claims           `json:"claims" jsonschema:"whose a token is, by its claims"`
}

func (i *Issuer) setDefaults() {
	i.Leeway, i.Refresh, i.StaleMax = Duration(jwt.DefaultLeeway), Duration(jwt.DefaultRefresh), Duration(jwt.DefaultStaleMax)
}

// Claims say whose a token is.
type Claims struct {
	Tenant  Claim `json:"tenant" jsonschema:"the tenant, which must exist: one that is always the same (acme), or a claim: \"{org}\""`
	Project Claim `json:"project,omitzero" jsonschema:"the tenant's project; default if left out"`
	User    Claim `json:"user,omitzero" jsonschema:"the end user, in place of what the request says; the claim sub where it comes to none without a default; as the request says if all of it is left out"`
	Class   Claim `json:"class,omitzero" jsonschema:"the highest class of its requests, and that of those that ask for none; the plan's if left out, or where the plan does not allow it"`
}

func (c *Claims) all() map[string]*Claim {
	return map[string]*Claim{"tenant": &c.Tenant, "project": &c.Project, "user": &c.User, "class": &c.Class}
}

// Claim is a word that is made of claims: a text, or a mapping.
type Claim struct {
	From    string            `json:"from,omitempty" jsonschema:"text, in which {PATH} is a claim: {org}, {realm_access.roles}, team-{department}"`
	Map     map[string]string `json:"map,omitempty" jsonschema:"words for what from says; as it is if left out. Of a claim that is a list, the items that stand here must agree"`
	Default string            `json:"default,omitempty" jsonschema:"the word where a claim is missing or map does not have it; none if left out"`
}

func (c *Claim) given() bool { return c.From != "" || c.Default != "" }

func (c *Claim) decodeNode(d *decoder, n node, path string) {
	values, ok := d.asMapping(n)
	if !ok {
		if text, ok := d.scalar(n, path); ok {
			c.From = text
		}
		return
	}
	if len(values) == 1 {
		if _, null := values[0].Value.(*ast.NullNode); null {
			d.report(nodePos(n), path, `write it in quotes: "{`+values[0].Key.String()+`}"`, "a brace begins a mapping here")
			return
		}
	}
	type plain Claim // without this method
	d.into(n, (*plain)(c), path)
}

func claimSchema() *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string", Examples: []any{"{org}"}}
	type plain Claim // without its method
	s, err := jsonschema.For[plain](nil)
	if err != nil {
		return text
	}
	relax(reflect.TypeFor[plain](), s)
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text, s}}
}

// Algorithm is one that tokens are signed with.
type Algorithm string

func (Algorithm) words() []string { return jwt.Algorithms }

// name is that of an issuer here.
func (i *Issuer) name() string {
	if u, err := url.Parse(i.Issuer); err == nil && i.Name == "" {
		return strings.ToLower(u.Hostname())
	}
	return i.Name
}

const maxLeeway = Duration(5 * time.Minute)

func (v *validator) auth() {
	names, issuers := make(map[string]bool), make(map[string]bool)
	for n := range v.c.Auth.Issuers {
		i := &v.c.Auth.Issuers[n]
		path := index("auth.issuers", n)
		v.issuerURL(join(path, "issuer"), i, i.Issuer)
		if i.JWKSURL != "" {
			v.issuerURL(join(path, "jwks_url"), i, i.JWKSURL)
		}
		name := i.name()
		if err := sluice.ValidName(name); err != nil && i.Issuer != "" {
			v.fail(join(path, "name"), "add one such as name: corp", "%s", err)
		}
		if issuers[i.Issuer] && i.Issuer != "" {
			v.fail(join(path, "issuer"), "join the two: several audiences may stand in one", "the issuer stands twice")
		} else if names[name] {
			v.fail(join(path, "name"), "name one of them otherwise", "%q is the name of another issuer", name)
		}
		names[name], issuers[i.Issuer] = true, true
		if len(i.Audiences) == 0 {
			v.fail(join(path, "audiences"), "name what its tokens for this gateway have in aud", "tokens for any other service would be taken")
		}
		for n, a := range i.Audiences {
			if a == "" {
				v.fail(index(join(path, "audiences"), n), "name what its tokens for this gateway have in aud, or set the variable that it is read from", "is empty: a token for nobody would be taken")
			}
		}
		for _, claim := range slices.Sorted(maps.Keys(i.Require)) {
			if claim == "" || slices.Contains(i.Require[claim], "") {
				v.fail(join(join(path, "require"), claim), "name the claim and what it must have, or no value for any", "has an empty text")
			}
		}
		v.atMost(join(path, "leeway"), i.Leeway > maxLeeway, i.Leeway, maxLeeway)
		if at := join(path, "refresh"); i.Refresh < Duration(time.Minute) || i.Refresh > Duration(24*time.Hour) {
			v.fail(at, "write a time such as 15m", "%s is not between 1m and 24h", i.Refresh)
		}
		if i.StaleMax > 0 && i.StaleMax < i.Refresh {
			v.fail(join(path, "stale_max"), "write a longer time, or 0", "keys would be stale before they are fetched again, after %s", i.Refresh)
		}
		v.claims(join(path, "claims"), i)
	}
}

func (v *validator) issuerURL(path string, i *Issuer, s string) {
	const fix = "write one such as https://login.example.com"
	u, err := url.Parse(s)
	switch {
	case s == "":
	case err != nil || u.Hostname() == "":
		v.fail(path, fix, "is not an address")
	case u.Scheme == "http" && (i.AllowPrivate || egress.NamesPrivate(u.Hostname())):
	case u.Scheme != "https":
		v.fail(path, fix, "keys must be fetched by https, or anyone on the way could put in his own")
	case u.User != nil || u.Fragment != "" || u.RawQuery != "" && strings.HasSuffix(path, "issuer"):
		v.fail(path, fix, "has more than an issuer's address")
	}
}

func (v *validator) claims(path string, i *Issuer) {
	all := i.Claims.all()
	for _, part := range slices.Sorted(maps.Keys(all)) {
		c, at := all[part], join(path, part)
		from, err := jwt.ParseText(c.From)
		if err != nil {
			v.fail(join(at, "from"), `write text and claims, such as "team-{department}"`, "%s", sluice.AsError(err).Msg)
			continue
		}
		literal := c.From != "" && !strings.Contains(c.From, "{")
		if literal && (len(c.Map) > 0 || c.Default != "") {
			v.fail(at, `write from: "{CLAIM}"`, "%q is always the same: it needs no map and no default", from)
		}
		if c.From == "" && len(c.Map) > 0 {
			v.fail(join(at, "from"), `name a claim: "{org}"`, "there is nothing to map")
		}
		if part == "tenant" && !c.given() && !v.broken[at] {
			v.fail(at, `name a tenant, or a claim: "{org}"`, "a token would be nobody's")
		}
		if part != "user" {
			v.claimWords(at, part, c, literal)
		}
	}
}

// claimWords checks the words that a rule may give: those of the map, the default, and
// one that is always the same.
func (v *validator) claimWords(path, part string, c *Claim, literal bool) {
	check := func(at, word string) {
		var class sluice.Class
		switch {
		case word == "":
		case part == "class":
			if class.UnmarshalText([]byte(word)) != nil {
				v.fail(at, suggest(word, classWords), "%q is no class", word)
			}
		default:
			if err := sluice.ValidName(word); err != nil {
				v.fail(at, "write a "+part+"'s id", "%s", err)
			}
		}
	}
	check(join(path, "default"), c.Default)
	for _, k := range slices.Sorted(maps.Keys(c.Map)) {
		check(join(join(path, "map"), k), c.Map[k])
	}
	if literal {
		check(path, c.From)
	}
}

// auth warns of mappings to tenants that the file does not declare, and of keys that
// others could exchange.
func (l *linter) auth() {
	for n := range l.c.Auth.Issuers {
		i := &l.c.Auth.Issuers[n]
		path := index("auth.issuers", n)
		for field, s := range map[string]string{"issuer": i.Issuer, "jwks_url": i.JWKSURL} {
			if u, err := url.Parse(s); err == nil && u.Scheme == "http" && !private(u.Hostname()) {
				l.warn(join(path, field), "write https://", "keys travel unprotected: whoever can change them can sign tokens")
			}
		}
		at := join(join(path, "claims"), "tenant")
		tenants := i.Claims.Tenant.names()
		l.projects(join(join(path, "claims"), "project"), i.Claims.Project.names(), tenants, i.Claims.Tenant.fixed())
		l.classes(join(join(path, "claims"), "class"), i.Claims.Class.names(), tenants, i.Claims.Tenant.fixed())
		for _, w := range tenants {
			if l.c.Tenants[w] == nil {
				l.warn(at, "declare the tenant, or create it: sluice tenant create "+w, "tenant %q is not declared here: tokens that are mapped to it are refused until it exists", w)
			}
		}
	}
}

// names are those that a rule comes to by itself: of the map, the default, and one that is always the
// same; in order, each once.
func (c *Claim) names() []string {
	words := append(slices.Collect(maps.Values(c.Map)), c.Default)
	if !strings.Contains(c.From, "{") {
		words = append(words, c.From)
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" })
}

// fixed reports whether a rule comes to nothing but its words.
func (c *Claim) fixed() bool { return !strings.Contains(c.From, "{") || len(c.Map) > 0 }

// projects warns of projects that none of the tenants has to which an issuer's tokens may
// be mapped. A tenant that the file does not declare may have any.
func (l *linter) projects(at string, words, tenants []string, fixed bool) {
	for _, w := range words {
		if w == string(sluice.DefaultProject) || !fixed || len(tenants) == 0 {
			continue
		}
		lacks := slices.ContainsFunc(tenants, func(id string) bool { return l.c.Tenants[id] == nil || l.c.Tenants[id].Projects[w] != nil })
		if !lacks {
			l.warn(at, "declare it under projects of the tenant, or create it: sluice project create TENANT "+w, "none of the tenants that tokens are mapped to declares project %q: tokens that are mapped to it are refused until it exists", w)
		}
	}
}

// classes warns of classes that the plans of none of those tenants allow: they are lowered to
// the plan's.
func (l *linter) classes(at string, words, tenants []string, fixed bool) {
	for _, w := range words {
		var class sluice.Class
		if class.UnmarshalText([]byte(w)) != nil || !fixed || len(tenants) == 0 {
			continue
		}
		allowed := slices.ContainsFunc(tenants, func(id string) bool {
			t := l.c.Tenants[id]
			if t == nil {
				return true
			}
			p := l.c.Plans[t.Plan]
			return p == nil && class >= sluice.Standard || p != nil && (class >= p.Class || slices.Contains(p.Classes, class))
		})
		if !allowed {
			l.warn(at, "add it to classes of the plan, or name one that the plan allows", "the plan of none of the tenants that tokens are mapped to allows class %s: it has no effect", w)
		}
	}
}

// IssuerSpecs are the issuers as they are put in force.
func (c *Config) IssuerSpecs() (out []jwt.Spec) {
	for n := range c.Auth.Issuers {
		out = append(out, c.Auth.Issuers[n].spec())
	}
	return out
}

func (i *Issuer) spec() jwt.Spec {
	s := jwt.Spec{
		Name: i.name(), Issuer: i.Issuer, Audiences: slices.Clone(i.Audiences), KeysURL: i.JWKSURL, AllowPrivate: i.AllowPrivate,
		Leeway: time.Duration(i.Leeway), Refresh: time.Duration(i.Refresh), StaleMax: time.Duration(i.StaleMax),
		Claims: jwt.Mapping{Tenant: i.Claims.Tenant.rule(), Project: i.Claims.Project.rule(), User: i.Claims.User.rule(), Class: i.Claims.Class.rule()},
	}
	for _, a := range i.Algorithms {
		s.Algorithms = append(s.Algorithms, string(a))
	}
	if len(s.Algorithms) == 0 {
		s.Algorithms = slices.Clone(jwt.DefaultAlgorithms)
	}
	for _, claim := range slices.Sorted(maps.Keys(i.Require)) {
		s.Require = append(s.Require, jwt.Require{Claim: claim, Values: slices.Clone(i.Require[claim])})
	}
	return s
}

func (c *Claim) rule() jwt.Rule {
	from, _ := jwt.ParseText(c.From) // checked as the file was read
	return jwt.Rule{From: from, Map: maps.Clone(c.Map), Default: c.Default}
}
