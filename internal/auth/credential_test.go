package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"sluice"
)

func mustMint(t testing.TB, env string) Minted {
	t.Helper()
	m, err := Mint(env)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMintRoundTrips(t *testing.T) {
	for _, env := range []string{"a", "prod", "abcdefghij12"} {
		m := mustMint(t, env)
		text := m.Key.Reveal()
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse of a minted key: %v", err)
		}
		if got != m.Ref || got.Env != env {
			t.Errorf("got %#v, want %#v", got, m.Ref)
		}
		parts := strings.Split(text, "_")
		if len(parts) != 5 || len(parts[2]) != 10 || len(parts[3]) != 43 || len(parts[4]) != 6 {
			t.Errorf("parts of %d, %d, %d, %d bytes", len(parts), len(parts[2]), len(parts[3]), len(parts[4]))
		}
		if err := sluice.ValidName(parts[2]); err != nil {
			t.Errorf("a key id must do as a name: %v", err)
		}
	}
	for _, env := range []string{"", "Prod", "a_b", "abcdefghij123", "ü"} {
		if _, err := Mint(env); err == nil {
			t.Errorf("Mint(%q) was accepted", env)
		}
	}
}

func TestMintSecretKeepsTheID(t *testing.T) {
	m := mustMint(t, "prod")
	n, err := MintSecret("prod", m.Ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n.Ref.ID != m.Ref.ID || n.Ref.secret == m.Ref.secret {
		t.Errorf("want the same id and another secret, got %v", n.Ref)
	}
	if _, err := MintSecret("prod", "nonsense"); err == nil {
		t.Error("an id that was not minted here was accepted")
	}
}

// Any single character changed, dropped or added is found offline.
func TestParseFindsEverySingleChange(t *testing.T) {
	text := mustMint(t, "prod").Key.Reveal()
	for i := range len(text) {
		for _, c := range []byte("aZ0_-.\x00\xff l") {
			if c == text[i] {
				continue
			}
			if _, err := Parse(text[:i] + string(c) + text[i+1:]); err == nil {
				t.Fatalf("byte %d changed to %q was accepted", i, c)
			}
		}
		if _, err := Parse(text[:i] + text[i+1:]); err == nil {
			t.Fatalf("byte %d dropped was accepted", i)
		}
	}
}

func FuzzParse(f *testing.F) {
	m, _ := Mint("prod")
	for _, s := range []string{m.Key.Reveal(), "", "slk_", "slk_a_b_c_d", MintAdmin().Key.Reveal(), strings.Repeat("_", 80)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := Parse(s)
		if err != nil {
			if e, ok := errors.AsType[*sluice.Error](err); !ok || e.Kind != sluice.KindUnauthenticated {
				t.Fatalf("error %#v is not an unauthenticated one", err)
			}
			if len(s) > 20 && strings.Contains(err.Error(), s) {
				t.Fatal("the error echoes the credential")
			}
			return
		}
		body := KeyPrefix + "_" + ref.Env + "_" + string(ref.ID) + "_" + ref.secret
		var crc [crcLen]byte
		if want := body + "_" + string(checksum(body, &crc)); s != want {
			t.Fatalf("accepted something else than it would mint")
		}
	})
}

func TestParseAllocatesNothing(t *testing.T) {
	text := mustMint(t, "prod").Key.Reveal()
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(text) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func TestCredential(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		authorization, apiKey []string
		openai, anthropic     string // what is taken; empty is an error
	}{
		{"bearer", []string{"Bearer A"}, nil, "A", "A"},
		{"bearer in any case, with spaces", []string{" bearer   A "}, nil, "A", "A"},
		{"x-api-key", nil, []string{" B "}, "B", "B"},
		{"both", []string{"Bearer A"}, []string{"B"}, "A", "B"},
		{"none", nil, nil, "", ""},
		{"empty bearer counts as absent", []string{"Bearer "}, []string{"B"}, "B", "B"},
		{"basic of a proxy counts as absent", []string{"Basic xyz"}, []string{"B"}, "B", "B"},
		{"basic alone", []string{"Basic xyz"}, nil, "", ""},
		{"twice", []string{"Bearer A", "Bearer B"}, nil, "", ""},
		{"key twice", []string{"Bearer A"}, []string{"B", "C"}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			for _, v := range tc.authorization {
				h.Add("Authorization", v)
			}
			for _, v := range tc.apiKey {
				h.Add("x-api-key", v)
			}
			for prefer, want := range map[Prefer]string{PreferAuthorization: tc.openai, PreferAPIKey: tc.anthropic} {
				got, err := Credential(h, prefer)
				if got != want || (err != nil) != (want == "") {
					t.Errorf("prefer %d: got %q, %v; want %q", prefer, got, err, want)
				}
			}
		})
	}
}

// A secret shows in no way of printing what holds it.
func TestCanary(t *testing.T) {
	m := mustMint(t, "prod")
	secret := m.Ref.secret
	now := Key{ID: m.Ref.ID, Secrets: []SecretHash{{Hash: m.Ref.Hash(Hasher{})}}}
	hash := m.Ref.Hash(Hasher{}).Hex()
	pepper := NewHasher(sluice.NewSecret("pepper-canary"))
	admin := MintAdmin()
	s := Compile(CompileOptions{}, Records{Keys: []Key{now}})
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, nil))
	for _, v := range []any{m, m.Ref, &m.Ref, m.Key, now, &now, pepper, AdminToken{Hash: admin.Ref.Hash(Hasher{})}, s.Problems()} {
		fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		b, _ := json.Marshal(v)
		out.Write(b)
		log.Info("x", "v", v)
	}
	other := m.Key.Reveal()[:len(m.Key.Reveal())-1] + "!"
	for _, bad := range []string{m.Key.Reveal(), other, admin.Key.Reveal()} {
		_, err := s.Identify(bad, s.testTime())
		fmt.Fprintf(&out, "%v %+v %#v", err, err, err)
		_, err = s.Admin(bad, s.testTime())
		fmt.Fprintf(&out, "%v %+v %#v", err, err, err)
	}
	for name, canary := range map[string]string{"secret": secret, "hash": hash, "pepper": "pepper-canary", "admin": admin.Ref.secret} {
		if strings.Contains(out.String(), canary) {
			t.Errorf("the %s shows:\n%s", name, out.String())
		}
	}
}
