package report

import (
	"strings"
	"unicode/utf8"
)

// ink is how text is set on a terminal.
type ink struct{ color, unicode bool }

// style is an ANSI code.
type style string

const (
	plain style = ""
	bold  style = "1"
	faint style = "2"
	green style = "32"
	red   style = "31"
	amber style = "33"
)

// in sets s, which must hold no line end, in a style.
func (k ink) in(st style, s string) string {
	if !k.color || st == plain || strings.TrimSpace(s) == "" {
		return k.text(s)
	}
	return "\x1b[" + string(st) + "m" + k.text(s) + "\x1b[0m"
}

// ascii spells what a terminal without Unicode cannot show.
var ascii = strings.NewReplacer("–", "-", "×", "x", "·", "-", "─", "-", "│", "|", "█", "#", "░", ".", "✓", "+", "✗", "!", "…", "~", "≥", ">=", "≤", "<=", "→", "->", "−", "-", "▲", "^")

// text is s as the terminal can show it.
func (k ink) text(s string) string {
	if k.unicode {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r > 126 {
			return '?'
		}
		return r
	}, ascii.Replace(s))
}

// width is the columns that s takes: one for each character.
func width(s string) int { return utf8.RuneCountInString(s) }

// left pads s on the right, and cuts it if it is too long.
func left(s string, n int) string {
	if w := width(s); w <= n {
		return s + strings.Repeat(" ", n-w)
	}
	return cut(s, n)
}

// right pads s on the left.
func right(s string, n int) string {
	return strings.Repeat(" ", max(0, n-width(s))) + s
}

// cut shortens s to n characters and marks that it did.
func cut(s string, n int) string {
	if width(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// wrapped breaks s at spaces into lines of at most n characters.
func wrapped(s string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
