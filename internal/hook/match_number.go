package hook

import "net/netip"

// maxCard and minCard bound the digits of a card's number.
const (
	minCard = 13
	maxCard = 19
)

func matchCard(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &wordy) || before(s, i, &dot) || s[i] < '2' || s[i] > '6' {
		return 0, nil, no
	}
	var number [maxCard]byte
	n, best := 0, 0
	for j := i; ; j++ {
		if j == len(s) && !final {
			return 0, nil, more
		}
		if j < len(s) && digits[s[j]] {
			if n == maxCard { // it goes on: what ended before is all that there is
				break
			}
			number[n] = s[j] - '0'
			n++
			continue
		}
		if j > 0 && digits[s[j-1]] && n >= minCard && luhn(number[:n]) && (j == len(s) || !wordy[s[j]]) {
			best = j
		}
		if j == len(s) || s[j] != ' ' && s[j] != '-' {
			break
		}
		if j+1 == len(s) && !final {
			return 0, nil, more
		}
		if j+1 >= len(s) || !digits[s[j+1]] {
			break
		}
	}
	if best == 0 {
		return 0, nil, no
	}
	return best - i, nil, yes
}

var dot = classOf("", ".")

// luhn is the checksum of ISO/IEC 7812-1.
func luhn(number []byte) bool {
	sum := 0
	for i, d := range number {
		v := int(d)
		if (len(number)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// ibanLengths are the lengths of account numbers by country, of the ISO 13616 registry.
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28, "CH": 21, "CR": 22,
	"CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22,
	"GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30,
	"KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27,
	"MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33,
	"SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29,
	"VA": 22, "VG": 24, "XK": 20,
}

func matchIBAN(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &wordy) {
		return 0, nil, no
	}
	for j := range 4 { // two letters, two digits
		of := &upper
		if j >= 2 {
			of = &digits
		}
		switch {
		case i+j == len(s):
			return 0, nil, open(final)
		case !of[s[i+j]]:
			return 0, nil, no
		}
	}
	want := ibanLengths[string(s[i:i+2])]
	if want == 0 {
		return 0, nil, no
	}
	var text [34]byte
	n, j := 0, i
	for n < want {
		switch {
		case j == len(s):
			return 0, nil, open(final)
		case upperNum[s[j]]:
			text[n] = s[j]
			n++
		case s[j] != ' ' || s[j-1] == ' ':
			return 0, nil, no
		}
		j++
	}
	if r := follows(s, j, &wordy, final); r != yes {
		return 0, nil, r
	}
	if !mod97(text[:n]) {
		return 0, nil, no
	}
	return j - i, nil, yes
}

// mod97 is the checksum of ISO 7064, the first four moved to the end.
func mod97(text []byte) bool {
	rest := 0
	for i := range text {
		c := text[(i+4)%len(text)]
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}

// form matches a number that is written as form says: d is a digit, all else itself.
func form(s []byte, i int, form string, final bool) found {
	for k := range len(form) {
		switch {
		case i+k == len(s):
			return open(final)
		case form[k] == 'd' && !digits[s[i+k]], form[k] != 'd' && s[i+k] != form[k]:
			return no
		}
	}
	return follows(s, i+len(form), &wordy, final)
}

func matchSSN(s []byte, i int, final bool) (int, *class, found) {
	const ssn = "ddd-dd-dddd"
	if before(s, i, &wordy) || before(s, i, &dash) {
		return 0, nil, no
	}
	if r := form(s, i, ssn, final); r != yes {
		return 0, nil, r
	}
	if r := follows(s, i+len(ssn), &dash, final); r != yes {
		return 0, nil, r
	}
	area, group, serial := string(s[i:i+3]), string(s[i+4:i+6]), string(s[i+7:i+11])
	if area == "000" || area == "666" || area[0] == '9' || group == "00" || serial == "0000" {
		return 0, nil, no
	}
	return len(ssn), nil, yes
}

// The digits of an international phone number, E.164.
const (
	minPhone = 8
	maxPhone = 15
)

// phoneForms are those of North America.
var phoneForms = []string{"(ddd) ddd-dddd", "(ddd)ddd-dddd", "(ddd) ddd dddd", "ddd-ddd-dddd", "ddd.ddd.dddd", "ddd ddd dddd"}

func matchPhone(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &wordy) || before(s, i, &dot) || before(s, i, &dash) {
		return 0, nil, no
	}
	if s[i] == '+' {
		n, r := international(s, i, final)
		return n, nil, r
	}
	first := i
	if s[i] == '(' {
		first++
	}
	if first < len(s) && (s[first] < '2' || s[first] > '9') {
		return 0, nil, no
	}
	undecided := false
	for _, f := range phoneForms {
		switch form(s, i, f, final) {
		case yes:
			return len(f), nil, yes
		case more:
			undecided = true
		}
	}
	if undecided {
		return 0, nil, more
	}
	return 0, nil, no
}

// international reads + and digits in groups.
func international(s []byte, i int, final bool) (int, found) {
	if before(s, i, &plus) {
		return 0, no
	}
	n, last, between := 0, 0, 0
	for j := i + 1; ; j++ {
		switch {
		case j == len(s) && !final:
			return 0, more
		case j < len(s) && digits[s[j]]:
			if n++; n > maxPhone || n == 1 && s[j] == '0' {
				return 0, no
			}
			last, between = j+1, 0
			continue
		case j < len(s) && n > 0 && between < 2 && phoneGap[s[j]]:
			between++
			continue
		case n < minPhone || last < len(s) && wordy[s[last]]:
			return 0, no
		}
		return last - i, yes
	}
}

var (
	plus     = classOf("", "+")
	phoneGap = classOf("", " .-()/")
)

// maxAddress bounds an address as text.
const maxAddress = 45

func matchIP(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &wordy) || before(s, i, &addressEnd) {
		return 0, nil, no
	}
	j := run(s, i, &addresses, maxAddress+1)
	switch {
	case j-i > maxAddress:
		return 0, nil, no
	case j == len(s) && !final:
		return 0, nil, more
	case j < len(s) && wordy[s[j]]:
		return 0, nil, no
	}
	for end := j; end > i; end-- { // a stop or a colon may end the sentence
		if identifies(s[i:end]) {
			return end - i, nil, yes
		}
		if !addressEnd[s[end-1]] {
			break
		}
	}
	return 0, nil, no
}

var addressEnd = classOf("", ":.")

// identifies reports whether text is the address of something in particular.
func identifies(text []byte) bool {
	dots, colons := 0, 0
	for _, c := range text {
		switch c {
		case '.':
			dots++
		case ':':
			colons++
		}
	}
	if dots != 3 && colons < 3 {
		return false
	}
	ip, err := netip.ParseAddr(string(text))
	return err == nil && !ip.IsLoopback() && !ip.IsUnspecified()
}
