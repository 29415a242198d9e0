package main

import "strings"

// prior is the weight, in tokens, that a feature has until text says otherwise:
// a run costs about a token, its further characters a part of one.
func prior(name string) float64 {
	class, from, start := strings.Cut(name, "<")
	class, _, _ = strings.Cut(class, "+")
	switch {
	case strings.HasPrefix(class, "word"), class == "digit" && !start:
		return 0.05
	case class == "space", class == "newline" && from == "newline":
		return 0
	case class == "symbol", class == "rare", class == "invalid":
		return 1.5
	case class == "box" && !start:
		return 0.15
	case class == "han", class == "kana", class == "hangul":
		return 0.75
	case !start, strings.HasSuffix(name, "+1"), strings.HasSuffix(name, "+2"):
		return 0.4
	}
	return 1
}
