package cache

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/wire"
)

func formOf(t testing.TB, body string) string {
	t.Helper()
	h := sha256.New()
	if err := hashJSON(h, []byte(body), nil); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return string(h.Sum(nil))
}

// Each line is one value in several spellings; no two lines are the same.
func TestCanonicalForm(t *testing.T) {
	lines := [][]string{
		{`{}`, " {\n} "},
		{`[]`},
		{`[[]]`},
		{`[[],[]]`},
		{`[{}]`},
		{`{"":[]}`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{ "b" : 2 , "\u0061":1 }`},
		{`{"a":2,"b":1}`},
		{`{"a":{"b":2}}`},
		{`{"a":{},"b":2}`},
		{`"a"`, `"\u0061"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"` + "e\u0301" + `"`}, // the same to the eye
		{`"😀"`, `"\ud83d\ude00"`},
		{`"\/"`, `"/"`},
		{`"\"\\\b\f\n\r\t"`, `"\u0022\u005c\u0008\u000c\u000a\u000d\u0009"`},
		{`"1"`},
		{`1`},
		{`1.0`, `1e0`, `10e-1`, `1.00`, `1E+0`},
		{`100`},
		{`1e2`, `100.0`, `1E2`},
		{`-1`},
		{`0`},
		{`-0`},
		{`0.0`, `0e5`, `0.000`},
		{`-0.0`},
		{`0.5`, `5e-1`, `0.50`, `50e-2`},
		{`9007199254740993`},
		{`9007199254740992`},
		{`0.1000000000000000055`},
		{`0.1`},
		{`true`},
		{`false`},
		{`null`},
		{`"true"`},
		{`"null"`},
		{``[:0] + `""`},
		{`["a","b"]`},
		{`["ab"]`},
		{`["b","a"]`},
		{`["a",["b"]]`},
		{`[["a"],"b"]`},
	}
	seen := map[string]string{}
	for _, spellings := range lines {
		first := formOf(t, spellings[0])
		if other, ok := seen[first]; ok {
			t.Errorf("%s has the form of %s", spellings[0], other)
		}
		seen[first] = spellings[0]
		for _, s := range spellings[1:] {
			if formOf(t, s) != first {
				t.Errorf("%s has not the form of %s", s, spellings[0])
			}
		}
	}
}

func TestCanonicalFormHasBounds(t *testing.T) {
	for name, body := range map[string]string{
		"bytes": `"` + strings.Repeat("x", MaxBody) + `"`, "values": "[" + strings.Repeat("1,", maxValues) + "1]",
		"cut": `{"a":`, "cut text": `{"a":"b`, "cut escape": `"a\`, "more": `{} {}`, "none": ``, "half": `[1`, "no name": `{1:2}`, "no value": `[,]`,
	} {
		if hashJSON(sha256.New(), []byte(body), nil) == nil {
			t.Errorf("%s has a form", name)
		}
	}
	wide := `{"a":"` + strings.Repeat("y", 4<<20) + `","b":[` + strings.Repeat("0.5,", 100_000) + `1]}`
	if err := hashJSON(sha256.New(), []byte(wide), nil); err != nil {
		t.Errorf("4 MiB and 100,000 values: %v", err)
	}
}

// anyValue draws a JSON value.
func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch k := rapid.IntRange(0, 6).Draw(t, "kind"); {
		case k == 0:
			return nil
		case k == 1:
			return rapid.Bool().Draw(t, "bool")
		case k == 2:
			return json.Number(fmt.Sprint(rapid.IntRange(-1000, 1000).Draw(t, "int")))
		case k == 3:
			return json.Number(fmt.Sprintf("%d.5", rapid.IntRange(-1000, 1000).Draw(t, "float")))
		case k == 4 || depth == 0:
			return rapid.StringN(0, 6, 24).Draw(t, "text")
		case k == 5:
			return rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.StringN(0, 3, 9), anyValue(depth-1), 0, 4).Draw(t, "object")
	})
}

// spelled writes a value in one of its many spellings.
func spelled(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t"}[r.IntN(4)] }
	text := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			if q, _ := json.Marshal(string(c)); r.IntN(3) > 0 && c < 0x10000 {
				b.Write(q[1 : len(q)-1])
			} else if c < 0x10000 {
				fmt.Fprintf(&b, `\u%04x`, c)
			} else {
				b.WriteRune(c)
			}
		}
		return `"` + b.String() + `"`
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case json.Number:
		return v.String()
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, space()+spelled(r, x)+space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		names := slices.Collect(maps.Keys(v))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var parts []string
		for _, n := range names {
			parts = append(parts, space()+text(n)+space()+":"+space()+spelled(r, v[n]))
		}
		return "{" + strings.Join(parts, ",") + space() + "}"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// Two spellings have one form exactly if they are one value.
func TestCanonicalFormIsThatOfTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyValue(3).Draw(t, "a"), anyValue(3).Draw(t, "b")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		form := func(v any) string {
			h := sha256.New()
			s := spelled(r, v)
			if err := hashJSON(h, []byte(s), nil); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			return string(h.Sum(nil))
		}
		if first, second := form(a), form(a); first != second { // two spellings
			t.Fatalf("spellings of %v differ", a)
		}
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		if (form(a) == form(b)) != (string(ja) == string(jb)) {
			t.Fatalf("%s and %s", ja, jb)
		}
	})
}

// FuzzCanonicalForm sees that what the scan accepts has a form, and that the form is that
// of the value which encoding/json reads.
func FuzzCanonicalForm(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"\u00e9\n"}],"temperature":0.50,"x":[1,1.0,null]}`))
	f.Add([]byte(`{"model":"m","messages":[],"a":{"\u0062":1,"a":"\ud83d\ude00"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := wire.Scan(wire.Chat, body); err != nil {
			return
		}
		var v any
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			return
		}
		if formOf(t, string(body)) != formOf(t, string(again)) {
			t.Errorf("%q and %q have two forms", body, again)
		}
	})
}
