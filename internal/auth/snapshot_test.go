package auth

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice"
)

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func (s *Snapshot) testTime() time.Time { return epoch }

func (s *Snapshot) policy(id sluice.KeyID) *sluice.Policy { return s.keys[id].principal.Policy }

func cmpFields(v any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		out = append(out, f.Name)
	}
	return out
}

// house is a small set of records around one key.
func house(m Minted, change func(*Records)) Records {
	r := Records{
		Plans:   []Plan{DefaultPlan("gold")},
		Tenants: []Tenant{{ID: "acme", Plan: "gold", Projects: []Project{{ID: "shop"}}}},
		Keys:    []Key{{ID: m.Ref.ID, Tenant: "acme", Project: "shop", Secrets: []SecretHash{{Hash: m.Ref.Hash(Hasher{})}}}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func reasonOf(err error) sluice.Reason {
	if err == nil {
		return sluice.ReasonNone
	}
	return sluice.AsError(err).Reason
}

func TestIdentify(t *testing.T) {
	m, other := mustMint(t, "prod"), mustMint(t, "prod")
	wrong, err := MintSecret("prod", m.Ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name       string
		change     func(*Records)
		credential sluice.Secret // empty is m's
		want       sluice.Reason
		kind       sluice.Kind
	}{
		{name: "good"},
		{name: "unknown id", credential: other.Key, want: sluice.Unauthenticated, kind: sluice.KindUnauthenticated},
		{name: "wrong secret", credential: wrong.Key, want: sluice.Unauthenticated, kind: sluice.KindUnauthenticated},
		{name: "malformed", credential: sluice.NewSecret("sk-123"), want: sluice.Unauthenticated, kind: sluice.KindUnauthenticated},
		{name: "revoked", change: func(r *Records) { r.Keys[0].Revoked = epoch }, want: sluice.KeyRevoked, kind: sluice.KindUnauthenticated},
		{name: "revoked, told to its holder alone", change: func(r *Records) { r.Keys[0].Revoked = epoch }, credential: wrong.Key, want: sluice.Unauthenticated, kind: sluice.KindUnauthenticated},
		{name: "disabled", change: func(r *Records) { r.Keys[0].Disabled = true }, want: sluice.KeyRevoked, kind: sluice.KindUnauthenticated},
		{name: "expires later", change: func(r *Records) { r.Keys[0].NotAfter = epoch.Add(1) }},
		{name: "expired", change: func(r *Records) { r.Keys[0].NotAfter = epoch }, want: sluice.KeyExpired, kind: sluice.KindUnauthenticated},
		{name: "secret ended", change: func(r *Records) { r.Keys[0].Secrets[0].NotAfter = epoch }, want: sluice.KeyExpired, kind: sluice.KindUnauthenticated},
		{name: "tenant suspended", change: func(r *Records) { r.Tenants[0].Suspended = true }, want: sluice.PermissionDenied, kind: sluice.KindForbidden},
		{name: "no tenant", change: func(r *Records) { r.Tenants = nil }, want: sluice.PermissionDenied, kind: sluice.KindForbidden},
		{name: "no plan", change: func(r *Records) { r.Plans = nil }, want: sluice.PermissionDenied, kind: sluice.KindForbidden},
		{name: "no project", change: func(r *Records) { r.Keys[0].Project = "gone" }, want: sluice.PermissionDenied, kind: sluice.KindForbidden},
		{name: "default project and plan", change: func(r *Records) { r.Keys[0].Project, r.Tenants[0].Plan = "", "" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Compile(CompileOptions{}, house(m, tc.change))
			credential := tc.credential
			if credential.Empty() {
				credential = m.Key
			}
			p, err := s.Identify(credential.Reveal(), epoch)
			if got := reasonOf(err); got != tc.want {
				t.Fatalf("got %v (%v), want %v", got, err, tc.want)
			}
			if err != nil {
				e := sluice.AsError(err)
				if e.Kind != tc.kind || p.Policy != nil {
					t.Errorf("got kind %v and principal %+v", e.Kind, p)
				}
				if strings.Contains(e.Error(), m.Ref.secret) || !strings.HasPrefix(e.Msg, "the ") && !strings.HasPrefix(e.Msg, "tenant ") {
					t.Errorf("message %q", e.Error())
				}
				return
			}
			if p.Tenant != "acme" || p.Key != m.Ref.ID || p.Policy == nil || p.Project == "" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestAdmin(t *testing.T) {
	m, key := MintAdmin(), mustMint(t, "prod")
	rec := AdminToken{ID: string(m.Ref.ID), Hash: m.Ref.Hash(Hasher{})}
	for _, tc := range []struct {
		name   string
		token  sluice.Secret
		change func(*AdminToken)
		want   sluice.Reason
	}{
		{"good", m.Key, nil, sluice.ReasonNone},
		{"unknown", MintAdmin().Key, nil, sluice.Unauthenticated},
		{"a tenant's key", key.Key, nil, sluice.Unauthenticated},
		{"revoked", m.Key, func(a *AdminToken) { a.Revoked = epoch }, sluice.KeyRevoked},
		{"expired", m.Key, func(a *AdminToken) { a.NotAfter = epoch }, sluice.KeyExpired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rec
			if tc.change != nil {
				tc.change(&r)
			}
			s := Compile(CompileOptions{}, Records{Admins: []AdminToken{r}})
			if _, err := s.Admin(tc.token.Reveal(), epoch); reasonOf(err) != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	if _, err := Compile(CompileOptions{}, house(key, nil)).Identify(m.Key.Reveal(), epoch); err == nil {
		t.Error("an admin token identified a tenant")
	}
}

// What a file declares shadows the store.
func TestFirstSourceWins(t *testing.T) {
	m := mustMint(t, "prod")
	file := house(m, func(r *Records) { r.Tenants[0].Origin = Origin{"sluice.yaml", 7} })
	store := house(m, func(r *Records) { r.Tenants[0].Suspended = true; r.Keys[0].Revoked = epoch })
	s := Compile(CompileOptions{}, file, store)
	if _, err := s.Identify(m.Key.Reveal(), epoch); err != nil {
		t.Error(err)
	}
	if s.Keys() != 1 || s.Tenants() != 1 {
		t.Errorf("%d keys, %d tenants", s.Keys(), s.Tenants())
	}
	if len(s.Problems()) != 3 || !strings.Contains(strings.Join(s.Problems(), "\n"), `tenant "acme" of the store is shadowed by the one of sluice.yaml:7`) {
		t.Errorf("got %q", s.Problems())
	}
}

func TestPolicyPointersAreSharedAndStable(t *testing.T) {
	a, b, c := mustMint(t, "a"), mustMint(t, "b"), mustMint(t, "c")
	records := func(weight int64) Records {
		r := house(a, nil)
		r.Plans[0].Weight = weight
		for _, m := range []Minted{b, c} {
			r.Keys = append(r.Keys, Key{ID: m.Ref.ID, Tenant: "acme", Secrets: []SecretHash{{Hash: m.Ref.Hash(Hasher{})}}})
		}
		r.Keys[2].Limits = []sluice.Limit{lim(sluice.Requests, sluice.PerMinute, 1)}
		return r
	}
	one := Compile(CompileOptions{}, records(1))
	if one.policy(a.Ref.ID) != one.policy(b.Ref.ID) || one.policy(a.Ref.ID) == one.policy(c.Ref.ID) {
		t.Error("keys share a policy exactly when its content is the same")
	}
	two := Compile(CompileOptions{Before: one}, records(1))
	for _, m := range []Minted{a, b, c} {
		if one.policy(m.Ref.ID) != two.policy(m.Ref.ID) {
			t.Error("a policy that did not change has a new pointer")
		}
	}
	three := Compile(CompileOptions{Before: two}, records(2))
	if three.policy(a.Ref.ID) == one.policy(a.Ref.ID) {
		t.Error("a policy that changed kept its pointer")
	}
}

func TestRotate(t *testing.T) {
	k := Key{Secrets: []SecretHash{{Hash: Hash{1}}, {Hash: Hash{2}, NotAfter: epoch.Add(time.Minute)}, {Hash: Hash{3}, NotAfter: epoch}}}
	k.Rotate(Hash{9}, epoch, time.Hour)
	want := []SecretHash{{Hash: Hash{9}}, {Hash: Hash{1}, NotAfter: epoch.Add(time.Hour)}, {Hash: Hash{2}, NotAfter: epoch.Add(time.Minute)}}
	if !reflect.DeepEqual(k.Secrets, want) {
		t.Errorf("got %v", k.Secrets)
	}
	k.Rotate(Hash{10}, epoch, 0)
	if len(k.Secrets) != 1 || k.Secrets[0].Hash != (Hash{10}) {
		t.Errorf("without overlap only the new one stays, got %v", k.Secrets)
	}
	for i := range 10 {
		k.Rotate(Hash{byte(i)}, epoch, time.Hour)
	}
	if len(k.Secrets) != MaxSecrets {
		t.Errorf("got %d secrets", len(k.Secrets))
	}
}

// manyKeys is n keys of n/100 tenants, and one credential among them.
func manyKeys(t testing.TB, n int) (Records, Minted) {
	m := mustMint(t, "prod")
	r := Records{Plans: []Plan{DefaultPlan("gold")}}
	for i := range max(n/100, 1) {
		r.Tenants = append(r.Tenants, Tenant{ID: sluice.TenantID(fmt.Sprintf("t%d", i)), Plan: "gold"})
	}
	for i := range n {
		r.Keys = append(r.Keys, Key{ID: sluice.KeyID(fmt.Sprintf("%010d", i)), Tenant: r.Tenants[i%len(r.Tenants)].ID, Secrets: []SecretHash{{Hash: Hash{byte(i)}}}})
	}
	r.Keys[n/2].ID, r.Keys[n/2].Secrets = m.Ref.ID, []SecretHash{{Hash: m.Ref.Hash(Hasher{})}}
	return r, m
}

func TestHundredThousandKeys(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return int64(ms.HeapAlloc)
	}
	before := heap()
	r, m := manyKeys(t, 100_000)
	start := time.Now()
	s := Compile(CompileOptions{}, r)
	took := time.Since(start)
	used := heap() - before
	t.Logf("100k keys: %d MB with their records, compiled in %v", used>>20, took)
	if used > 200<<20 {
		t.Errorf("100k keys take %d MB, the bound is 200", used>>20)
	}
	text := m.Key.Reveal()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Identify(text, epoch); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Identify allocates %v times", n)
	}
	runtime.KeepAlive(r)
}

func BenchmarkIdentify(b *testing.B) {
	r, m := manyKeys(b, 100_000)
	s := Compile(CompileOptions{}, r)
	text := m.Key.Reveal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Identify(text, epoch); err != nil {
			b.Fatal(err)
		}
	}
}
