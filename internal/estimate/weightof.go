package estimate

import "strings"

func weightOf(name string) uint16 {
	c, from, start := strings.Cut(name, "<")
	_, plus := name, strings.HasSuffix(name, "+") || strings.Contains(name, "+")
	switch {
	case strings.HasPrefix(name, "word"), strings.HasPrefix(name, "digit+"):
		return 40
	case strings.HasPrefix(name, "upper+"):
		return 400
	case strings.HasPrefix(name, "latin+"):
		return 500
	case c == "space":
		return 0
	case c == "newline" && from == "newline":
		return 100
	case c == "han" || strings.HasPrefix(name, "han+"):
		return 737
	case strings.HasPrefix(name, "kana") || strings.HasPrefix(name, "hangul"):
		return 850
	case !start:
		return 350
	case plus && c != "rare" && c != "symbol" && c != "invalid":
		return 500
	case c == "rare" || c == "symbol" || c == "invalid":
		return 1536
	}
	return 1024
}
