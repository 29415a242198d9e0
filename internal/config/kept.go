package config

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"sluice"
)

// withheld begins what stands in a kept text in place of a secret.
const withheld = "withheld:"

// A secret that stands in the file in the open, or beside a reference to a variable,
// is taken out of the text before that is kept anywhere: a mark stands in its place. A
// mark is exchanged for the secret again only where a configuration that is at hand
// still has it.

// standing is a secret that stands in a file as it is. It is behind a pointer, since
// fmt shows what is inside of fields that are not exported.
type standing struct {
	Pos
	raw *sluice.Secret // as it is written, references not expanded
}

// stands reports whether a secret that is written so would be given away by the text.
func stands(raw string) bool {
	if strings.HasPrefix(raw, "file:") {
		return false
	}
	loc := hidden.FindStringIndex(raw)
	return loc == nil || loc[0] > 0 || loc[1] < len(raw)
}

// Marks exchanges the marks of secrets for what is written in their place. The zero
// Marks knows none.
type Marks struct {
	key   *sluice.Secret
	known map[string]*sluice.Secret
}

// NewMarks knows the secrets that stand in the open in the files that are given. The
// marks of one key tell nothing of the secrets to whoever does not have it.
func NewMarks(key sluice.Secret, from ...*Config) Marks {
	m := Marks{key: &key, known: make(map[string]*sluice.Secret)}
	for _, c := range from {
		if c == nil {
			continue
		}
		for _, s := range c.standing {
			m.known[m.of(s.raw.Reveal())] = s.raw
		}
	}
	return m
}

// of is the mark of what is written. It is told apart among the secrets of one file,
// and too short to be guessed at.
func (m Marks) of(raw string) string {
	mac := hmac.New(sha256.New, []byte(m.key.Reveal()))
	mac.Write([]byte(raw))
	return withheld + hex.EncodeToString(mac.Sum(nil)[:4])
}

// unmark is what is written in place of a mark.
func (d *decoder) unmark(pos Pos, path, raw string) (string, bool) {
	if !strings.HasPrefix(raw, withheld) {
		return raw, true
	}
	if d.anyMark {
		return raw, true
	}
	if was := d.marks.known[raw]; was != nil {
		return was.Reveal(), true
	}
	d.report(pos, path, "write secrets as ${NAME} or file:/path, which are kept as they are",
		"the secret stood in the file in the open and is not kept with it, and the file of now does not have it any more")
	return "", false
}

// Kept is the text of the configuration as it may be kept: without the secrets that
// stand in it. Empty is that there is no such text, since a secret is written in a way
// that hides where it ends.
func (c *Config) Kept(text []byte, m Marks) string {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(c.standing) == 0 {
		return string(text)
	}
	lines := strings.SplitAfter(string(text), "\n")
	byPlace := slices.Clone(c.standing)
	slices.SortFunc(byPlace, func(a, b standing) int { return cmp.Or(cmp.Compare(b.Line, a.Line), cmp.Compare(b.Col, a.Col)) })
	byPlace = slices.CompactFunc(byPlace, func(a, b standing) bool { return a.Pos == b.Pos }) // one that several aliases mean
	for _, s := range byPlace {
		if s.Line < 1 || s.Line > len(lines) {
			return ""
		}
		line, ok := m.replace(lines[s.Line-1], s)
		if !ok {
			return ""
		}
		lines[s.Line-1] = line
	}
	return strings.Join(lines, "")
}

// replace puts the mark of a secret into its line, if it stands there as it is read.
func (m Marks) replace(line string, s standing) (string, bool) {
	at := 0
	for range s.Col - 1 {
		if at >= len(line) {
			return "", false
		}
		at += len(string([]rune(line[at:])[:1]))
	}
	if at < len(line) && (line[at] == '"' || line[at] == '\'') {
		at++
	}
	raw, mark := s.raw.Reveal(), m.of(s.raw.Reveal())
	if strings.HasPrefix(line[at:], mark) {
		return line, true
	}
	raw = written(raw)
	rest, ok := strings.CutPrefix(line[at:], raw)
	if !ok || raw == "" || rest != "" && !strings.ContainsRune(" \t\r\n,}]\"'", rune(rest[0])) {
		return "", false
	}
	return line[:at] + mark + rest, true
}

// written is a text with its references as they stand in the file.
func written(raw string) string { return hidden.ReplaceAllString(raw, "$${$1}") }
