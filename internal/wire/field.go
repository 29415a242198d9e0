package wire

// ValidName and ValidValue report whether a string may be the name and the value of a
// header (RFC 9110 §5.1, §5.5): what else stands in a head could be read as another one.
func ValidName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || separator[c] {
			return false
		}
	}
	return s != ""
}

var separator = [128]bool{
	'(': true, ')': true, '<': true, '>': true, '@': true, ',': true, ';': true, ':': true, '\\': true, '"': true,
	'/': true, '[': true, ']': true, '?': true, '=': true, '{': true, '}': true,
}

// ValidValue: see ValidName.
func ValidValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
