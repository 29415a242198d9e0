package estimate

// class is what the automaton sees of a character. Classes are chosen by how
// byte-pair vocabularies split text: letters by their role in a word,
// punctuation by what it usually stands next to, other scripts by how well
// vocabularies cover them.
type class uint8

const (
	vowel class = iota
	consonant
	upper
	digit
	space
	tab
	newline
	stop    // . ,
	pause   // ; : ! ?
	quote   // " ' `
	opening // ( [ { <
	closing // ) ] } >
	ruler   // = * # ~ +
	hyphen  // - _
	slash   // / \ | & % $ @ ^
	control
	latin // letters of Latin beyond ASCII, combining marks
	greek
	cyrillic
	cyrillicExt // letters that Russian does not have
	hebrew
	arabic
	devanagari
	indic // other scripts of India
	thai  // and Lao
	hangul
	kana
	han
	alphabet // every other alphabetic script
	box      // box drawing and blocks, whose runs are rulers
	mark     // punctuation beyond ASCII
	symbol   // arrows, box drawing, emoji, private use
	rare     // Han beyond the basic block, other supplementary letters
	invalid  // a byte that is no UTF-8
	numClasses
)

var classNames = [numClasses]string{
	"vowel", "consonant", "upper", "digit", "space", "tab", "newline", "stop", "pause", "quote", "opening", "closing",
	"ruler", "hyphen", "slash", "control", "latin", "greek", "cyrillic", "cyrillicExt", "hebrew", "arabic", "devanagari", "indic",
	"thai", "hangul", "kana", "han", "alphabet", "box", "mark", "symbol", "rare", "invalid",
}

const (
	firstPunct  = stop
	lastPunct   = slash
	firstScript = greek
	lastScript  = box
)

// asciiClass is the class of each byte below 0x80.
var asciiClass = newASCIIClass()

func newASCIIClass() (t [128]class) {
	for i := range t {
		switch {
		case i < 0x20 || i == 0x7f:
			t[i] = control
		case 'a' <= i && i <= 'z':
			t[i] = consonant
		case 'A' <= i && i <= 'Z':
			t[i] = upper
		case '0' <= i && i <= '9':
			t[i] = digit
		}
	}
	set := func(chars string, c class) {
		for i := range len(chars) {
			t[chars[i]] = c
		}
	}
	set("aeiouy", vowel)
	set(" ", space)
	set("\t", tab)
	set("\n\r", newline)
	set(".,", stop)
	set(";:!?", pause)
	set("\"'`", quote)
	set("([{<", opening)
	set(")]}>", closing)
	set("=*#~+", ruler)
	set("-_", hyphen)
	set("/\\|&%$@^", slash)
	return t
}

// span gives a class to the runes from the end of the span before it up to and
// including last.
type span struct {
	last rune
	c    class
}

// spans covers the basic multilingual plane from 0x80 on, in steps of 16.
var spans = []span{
	{0xbf, mark},
	{0x36f, latin},
	{0x3ff, greek},
	{0x44f, cyrillic},
	{0x52f, cyrillicExt},
	{0x58f, alphabet},
	{0x5ff, hebrew},
	{0x6ff, arabic},
	{0x74f, alphabet},
	{0x77f, arabic},
	{0x8ff, alphabet},
	{0x97f, devanagari},
	{0xdff, indic},
	{0xeff, thai},
	{0x10ff, alphabet},
	{0x11ff, hangul},
	{0x1dff, alphabet},
	{0x1eff, latin},
	{0x1fff, greek},
	{0x206f, mark},
	{0x24ff, symbol},
	{0x259f, box},
	{0x2bff, symbol},
	{0x2cff, alphabet},
	{0x2d2f, alphabet},
	{0x2ddf, alphabet},
	{0x2e7f, mark},
	{0x2fff, rare},
	{0x303f, mark},
	{0x30ff, kana},
	{0x312f, alphabet},
	{0x318f, hangul},
	{0x31ef, rare},
	{0x31ff, kana},
	{0x33ff, symbol},
	{0x4dbf, rare},
	{0x4dff, symbol},
	{0x9fff, han},
	{0xa95f, alphabet},
	{0xa97f, hangul},
	{0xabff, alphabet},
	{0xd7ff, hangul},
	{0xdfff, invalid},
	{0xf8ff, symbol},
	{0xfaff, han},
	{0xfb4f, hebrew},
	{0xfdff, arabic},
	{0xfe6f, mark},
	{0xfeff, arabic},
	{0xff6f, mark},
	{0xff9f, kana},
	{0xffff, mark},
}

// planeClass is the class of each 16 runes of the basic multilingual plane.
var planeClass = newPlaneClass()

func newPlaneClass() (t [0x1000]class) {
	r := rune(0x80)
	for _, s := range spans {
		for ; r <= s.last; r += 16 {
			t[r>>4] = s.c
		}
	}
	return t
}

// classOf is the class of a rune that is not ASCII.
func classOf(r rune) class {
	switch {
	case r < 0x10000:
		return planeClass[r>>4]
	case r < 0x1f000:
		return rare
	case r < 0x20000:
		return symbol
	}
	return rare
}
