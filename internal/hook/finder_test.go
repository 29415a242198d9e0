package hook

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// whole redacts a text in one piece.
func redactWhole(kinds Kinds, text string) string {
	var counts Counts
	return string(spliced([]byte(text), matches(NewFinder(kinds), []byte(text), &counts)))
}

// parts redacts a text that is cut at the given places.
func redactParts(r *Redactor, text string, cuts []int) string {
	var out []byte
	from := 0
	for _, at := range cuts {
		out = r.Push(out, []byte(text[from:at]))
		from = at
	}
	out = r.Push(out, []byte(text[from:]))
	return string(r.End(out))
}

const (
	aKey = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx0123456789"
	aJWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
	aPEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq\nZ+0/x==\n-----END RSA PRIVATE KEY-----"
)

func TestFinds(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"mail alice@example.com, please", "mail [redacted:email], please"},
		{"<bob.smith+tag@mail.example.co.uk>.", "<[redacted:email]>."},
		{"alice@example.com.", "[redacted:email]."},
		{"alice@localhost a@b @c foo@bar.1", "alice@localhost a@b @c foo@bar.1"},
		{"my key is " + aKey + ".", "my key is [redacted:secret]."},
		{"KEY=" + aKey, "KEY=[redacted:secret]"},
		{"sk-learn-is-a-library-for-machines", "sk-learn-is-a-library-for-machines"},
		{"AKIAIOSFODNN7EXAMPLE and AKIAshort", "[redacted:secret] and AKIAshort"},
		{"ghp_" + strings.Repeat("a1", 18) + "!", "[redacted:secret]!"},
		{"Bearer " + aJWT + "\n", "Bearer [redacted:jwt]\n"},
		{"a " + aPEM + " b", "a [redacted:private_key] b"},
		{strings.ReplaceAll(aPEM, "\n", `\n`), "[redacted:private_key]"},
		{"-----BEGIN PUBLIC KEY-----\nMII", "-----BEGIN PUBLIC KEY-----\nMII"},
		{"-----BEGIN PRIVATE KEY-----\nMIIcut", "[redacted:private_key]"},
		{"card 4111 1111 1111 1111 exp 12/29", "card [redacted:card] exp 12/29"},
		{"card 4111-1111-1111-1111.", "card [redacted:card]."},
		{"4111111111111111", "[redacted:card]"},
		{"4111111111111112 is no card, nor 41111111111111111111111", "4111111111111112 is no card, nor 41111111111111111111111"},
		{"378282246310005", "[redacted:card]"},
		{"4111 1111 1111 1111 12", "[redacted:card] 12"},
		{"IBAN DE89 3704 0044 0532 0130 00!", "IBAN [redacted:iban]!"},
		{"GB82WEST12345698765432", "[redacted:iban]"},
		{"DE89370400440532013001 has a wrong checksum", "DE89370400440532013001 has a wrong checksum"},
		{"ssn 078-05-1120, 000-12-3456, 900-12-3456", "ssn [redacted:ssn], 000-12-3456, 900-12-3456"},
		{"call +49 (30) 1234-5678 now", "call [redacted:phone] now"},
		{"call (555) 123-4567 or 555-123-4567 or 555.123.4567x", "call [redacted:phone] or [redacted:phone] or 555.123.4567x"},
		{"+1 is a number, and so is +12", "+1 is a number, and so is +12"},
		{"host 10.1.2.3 and 2001:db8::8a2e:370:7334.", "host [redacted:ip] and [redacted:ip]."},
		{"127.0.0.1 ::1 12:30:45 1.2.3 std::vector a::b 256.1.1.1", "127.0.0.1 ::1 12:30:45 1.2.3 std::vector a::b 256.1.1.1"},
		{"größe@exämple.de grüße", "größe@exämple.de grüße"},
		{"ä alice@example.com ü", "ä [redacted:email] ü"},
		{"the quick brown fox, 12 345 678 times; e.g. 3.14159265358979", "the quick brown fox, 12 345 678 times; e.g. 3.14159265358979"},
	} {
		if got := redactWhole(AllKinds, tt.in); got != tt.want {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

func TestOnlyItsKinds(t *testing.T) {
	text := "alice@example.com 4111111111111111"
	if got := redactWhole(1<<Card, text); got != "alice@example.com [redacted:card]" {
		t.Error(got)
	}
	for k := range Kind(NumKinds) {
		got, err := ParseKinds([]string{k.String()})
		if err != nil || got != 1<<k {
			t.Errorf("%v: %b, %v", k, got, err)
		}
	}
	if _, err := ParseKinds([]string{"emails"}); err == nil {
		t.Error("no error")
	}
}

// pieces are what made-up texts are put together of: whole identifiers, their beginnings,
// and what stands between them.
var pieces = []string{
	aKey, aJWT, aPEM, "alice@example.com", "4111 1111 1111 1111", "4111111111111111", "DE89 3704 0044 0532 0130 00", "078-05-1120", "+49 30 12345678", "(555) 123-4567",
	"10.1.2.3", "2001:db8::1:2", "AKIAIOSFODNN7EXAMPLE", "eyJ", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----", "@", ".", " ", "\n", "-", "+", "(", ":",
	"a", "é", "漢", "𝄞", "7", "DE", "the ", "e.g. ", "x@", "_", "\"", "\\", "{", "}", "[", "]", ",", "0", "null",
}

func textGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "pieces"), "")
	})
}

func cutsGen(text string) *rapid.Generator[[]int] {
	return rapid.Custom(func(t *rapid.T) []int {
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 12).Draw(t, "cuts")
		slices.Sort(cuts)
		return cuts
	})
}

// Any cutting gives what the whole gives.
func TestCuttingMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := textGen().Draw(t, "text")
		kinds := Kinds(rapid.Uint16Range(0, uint16(AllKinds)).Draw(t, "kinds"))
		want := redactWhole(kinds, text)
		r := NewRedactor(kinds)
		for range 2 { // a redactor can be used again
			if got := redactParts(r, text, cutsGen(text).Draw(t, "cuts")); got != want {
				t.Fatalf("%q:\n got %q\nwant %q", text, got, want)
			}
		}
		one := make([]int, len(text))
		for i := range one {
			one[i] = i
		}
		if got := redactParts(r, text, one); got != want {
			t.Fatalf("byte by byte %q:\n got %q\nwant %q", text, got, want)
		}
	})
}

// What is held is bounded, and ordinary words are let go as soon as they end.
func TestHoldsLittle(t *testing.T) {
	r := NewRedactor(AllKinds)
	most := 0
	for range 2000 {
		for _, p := range []string{"the", " quick", " brown", " fox@", "AKIA", "4", "1", "1", "-----BEGIN PRIVATE KEY-----", "MII", ".", strings.Repeat("a", 300)} {
			r.Push(nil, []byte(p))
			most = max(most, r.Held())
		}
	}
	if most > 2*jwtHeader {
		t.Errorf("%d bytes were held", most)
	}
	r = NewRedactor(AllKinds)
	if got := string(r.Push(nil, []byte("Hello, wor"))); got != "Hello, " {
		t.Errorf("%q is let go", got)
	}
	if got := string(r.Push(nil, []byte("ld!"))); got != "world!" {
		t.Errorf("%q is let go", got)
	}
	long := NewRedactor(AllKinds)
	long.Push(nil, []byte("-----BEGIN PRIVATE KEY-----"))
	for range 10_000 {
		long.Push(nil, []byte("MIIEowIBAAKCAQEA7bq\n"))
	}
	if long.Held() > 1 {
		t.Errorf("%d bytes of a key are held", long.Held())
	}
}

// FuzzRedactor: any text, cut anywhere, and what comes out is UTF-8 if what went in is.
func FuzzRedactor(f *testing.F) {
	for _, p := range pieces {
		f.Add(p+" "+p, 1, 3)
	}
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		if len(text) > 1<<12 {
			return
		}
		want := redactWhole(AllKinds, text)
		n := len(text) + 1
		cuts := []int{((a % n) + n) % n, ((b % n) + n) % n}
		slices.Sort(cuts)
		if got := redactParts(NewRedactor(AllKinds), text, cuts); got != want {
			t.Fatalf("%q at %v:\n got %q\nwant %q", text, cuts, got, want)
		}
		if utf8.ValidString(text) && !utf8.ValidString(want) {
			t.Fatalf("%q becomes %q", text, want)
		}
		if again := redactWhole(AllKinds, want); again != want && strings.Count(want, "[redacted:") > 0 && !strings.Contains(again, "[redacted:") {
			t.Fatalf("%q becomes %q", want, again)
		}
	})
}

func prose(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "The order %d was placed on 2026-11-%02d by a customer; it weighs %d.%d kg, and its state is \"shipped\" (see the log). ", i*7919, i%28+1, i%90, i%10)
		if i%20 == 19 {
			b.WriteString("Write to alice@example.com or call +49 30 1234 5678. ")
		}
	}
	return b.Bytes()[:n]
}

// BenchmarkRedact is the cost of a text of 64 KiB, and that of one that comes in tokens.
func BenchmarkRedact(b *testing.B) {
	text := prose(64 << 10)
	b.Run("whole", func(b *testing.B) {
		f := NewFinder(AllKinds)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			f.all(text, func(int, int, Kind) {})
		}
	})
	b.Run("streamed", func(b *testing.B) {
		r := NewRedactor(AllKinds)
		out := make([]byte, 0, 1<<10)
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			for i := 0; i+4 <= len(text); i += 4 {
				out = r.Push(out[:0], text[i:i+4])
			}
			out = r.End(out[:0])
		}
	})
}
