package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash/crc32"
	"strings"
	"testing"

	"sluice"
)

func TestHasherIsHMAC(t *testing.T) {
	secret := strings.Repeat("s", secretLen)
	if got, want := (Hasher{}).Sum(secret), Hash(sha256.Sum256([]byte(secret))); got != want {
		t.Error("without a pepper it is not SHA-256")
	}
	for _, pepper := range []string{"p", strings.Repeat("p", 64), strings.Repeat("p", 65), strings.Repeat("p", 500)} {
		mac := hmac.New(sha256.New, []byte(pepper))
		mac.Write([]byte(secret))
		if got, want := NewHasher(sluice.NewSecret(pepper)).Sum(secret), Hash(mac.Sum(nil)); got != want {
			t.Errorf("pepper of %d bytes: not HMAC-SHA-256", len(pepper))
		}
	}
	h := NewHasher(sluice.NewSecret("pepper"))
	if n := testing.AllocsPerRun(100, func() { h.Sum(secret) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func TestHashHexRoundTrips(t *testing.T) {
	h := Hasher{}.Sum("x")
	got, err := ParseHash(h.Hex())
	if err != nil || got != h {
		t.Errorf("got %s, %v", got.Hex(), err)
	}
	for _, bad := range []string{"", "***", h.Hex()[1:], strings.Repeat("g", 64)} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("ParseHash(%q) was accepted", bad)
		}
	}
}

func TestEqual(t *testing.T) {
	a, b := Hasher{}.Sum("a"), Hasher{}.Sum("b")
	if a.equal(a) != 1 || a.equal(b) != 0 {
		t.Error("equal is wrong")
	}
}

func TestChecksumIsCRC32(t *testing.T) {
	for _, s := range []string{"", "slk_prod_x", strings.Repeat("z", 70)} {
		var got, want [crcLen]byte
		checksum(s, &got)
		v := crc32.ChecksumIEEE([]byte(s))
		for i := range want {
			want[crcLen-1-i] = base62[v%62]
			v /= 62
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}
