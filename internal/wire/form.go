package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice"
	"sluice/internal/price"
)

// Bounds of a form.
const (
	maxParts      = 128
	maxPartHeader = 4 << 10 // bytes of all headers of a part
	maxFormValue  = 1 << 20 // bytes of a value that is no file
)

// ScanForm reads the head of a request whose body is a form (multipart/form-data, RFC
// 7578). It refuses, as a sluice.KindInvalid error, all that two parsers may read
// differently: text before the first part or behind the last, a line end that is not
// CRLF, a header or a disposition of another kind, a field of weight that comes twice.
// The body is not changed and not kept.
func ScanForm(op Operation, body []byte, contentType string) (*Head, error) {
	boundary, err := boundaryOf(contentType)
	if err != nil {
		return nil, err
	}
	h := &Head{Op: op, ParallelTools: true, form: true}
	f := form{b: body, delimiter: append([]byte("\r\n--"), boundary...), s: scanner{lexer: lexer{b: body}, h: h}}
	if err := f.parts(); err != nil {
		return nil, err
	}
	if f.s.wrong != nil {
		return nil, f.s.wrong
	}
	f.s.mediaLen = len(body) - f.text // all that is neither media nor text is no input
	if err := f.s.finish(); err != nil {
		return nil, err
	}
	return h, nil
}

// boundaryOf is what parts a form.
func boundaryOf(contentType string) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	b := params["boundary"]
	if err != nil || kind != "multipart/form-data" || b == "" || len(b) > 70 {
		e := sluice.Invalid("content-type", "must be multipart/form-data with a boundary here")
		e.Hint = "let your client library write the form"
		return "", e
	}
	return b, nil
}

// form is the state of one ScanForm.
type form struct {
	b         []byte
	i         int
	delimiter []byte // with the line end before it
	s         scanner
	seen      []string
	text      int // bytes of values that are text
}

// entry is one part.
type entry struct {
	name string
	file bool
	at   span // of its value
}

func badForm(format string, args ...any) *sluice.Error {
	return sluice.Invalid("", "the form is refused: "+format, args...)
}

// parts reads all of the form.
func (f *form) parts() error {
	if !bytes.HasPrefix(f.b, f.delimiter[2:]) {
		return badForm("it does not begin with its boundary")
	}
	f.i = len(f.delimiter) - 2
	for n := 0; ; n++ {
		switch rest := f.b[f.i:]; {
		case bytes.HasPrefix(rest, []byte("\r\n")):
			f.i += 2
		case string(rest) == "--" || string(rest) == "--\r\n":
			return nil
		default:
			return badForm("at byte %d something follows a boundary", f.i)
		}
		if n == maxParts {
			return badForm("it has more than %d parts", maxParts)
		}
		e, err := f.part()
		if err != nil {
			return err
		}
		f.take(&e)
	}
}

// part reads one part, up to the boundary behind it.
func (f *form) part() (e entry, err error) {
	end := bytes.Index(f.b[f.i:min(len(f.b), f.i+maxPartHeader)], []byte("\r\n\r\n"))
	if end < 0 {
		return e, badForm("a part at byte %d has no end of its headers within %d bytes", f.i, maxPartHeader)
	}
	if e.name, e.file, err = disposition(f.b[f.i : f.i+end]); err != nil {
		return e, err
	}
	e.at.start = f.i + end + 4
	length := bytes.Index(f.b[e.at.start-2:], f.delimiter) - 2 // the line end may be that of the headers
	if length < 0 {
		return e, badForm("the part %q is not ended by the boundary", e.name)
	}
	e.at.end = e.at.start + length
	f.i = e.at.end + len(f.delimiter)
	return e, nil
}

// disposition reads the headers of a part.
func disposition(header []byte) (name string, file bool, err error) {
	found := false
	for line := range bytes.SplitSeq(header, []byte("\r\n")) {
		key, value, ok := strings.Cut(string(line), ":")
		switch key = strings.ToLower(key); {
		case !ok || strings.ContainsAny(value, "\r\n\x00"):
			return "", false, badForm("%.40q is no header of a part", line)
		case key == "content-type":
			continue
		case key != "content-disposition" || found:
			return "", false, badForm("a part has a header %q: Content-Disposition and Content-Type, each once, are all that it may have", key)
		}
		found = true
		var rest string
		if name, rest, ok = plainName(value); !ok {
			return "", false, badForm("the disposition%.80s is not form-data with a plain name, and then a filename", value)
		}
		file = rest != ""
	}
	if !found {
		return "", false, badForm("a part has no Content-Disposition")
	}
	return name, file, nil
}

// plainName is the name that a disposition gives, and what follows it: nothing, or the
// names of a file. That is how libraries write it; what else the grammar allows is
// where parsers differ.
func plainName(value string) (name, file string, ok bool) {
	rest, ok := strings.CutPrefix(value, ` form-data; name="`)
	name, rest, closed := strings.Cut(rest, `"`)
	if !ok || !closed || name == "" || strings.ContainsAny(name, `\;`) {
		return "", "", false
	}
	if rest == "" {
		return name, "", true
	}
	_, _, err := mime.ParseMediaType("form-data" + rest)
	return name, rest, err == nil && onlyFilename(rest, true) && onlyFilename(rest, false)
}

// onlyFilename reports whether a filename is all that is given outside of quotes,
// which some parsers let a backslash keep open and others do not.
func onlyFilename(params string, escapes bool) bool {
	var bare []byte
	quoted := false
	for i := 0; i < len(params); i++ {
		switch c := params[i]; {
		case c == '\\' && escapes && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c != ' ' && c != '\t':
			bare = append(bare, c|0x20)
		}
	}
	names := bytes.Count(bare, []byte("name=")) + bytes.Count(bare, []byte("name*="))
	return names > 0 && names == bytes.Count(bare, []byte(";filename="))+bytes.Count(bare, []byte(";filename*="))
}

// single are the fields that decide what a request costs or where it goes.
var single = []string{"model", "n", "stream", "prompt", "response_format", "user", "file", "mask"}

// take notes a part.
func (f *form) take(e *entry) {
	name := e.name
	for _, known := range single {
		if !strings.EqualFold(name, known) {
			continue
		}
		if name != known {
			f.s.reject(known, "is written "+strconv.Quote(name)+" here: names are case-sensitive")
		}
		if slices.Contains(f.seen, known) {
			f.s.reject(known, "is given twice")
		}
		f.seen = append(f.seen, known)
	}
	if e.file {
		f.file(e)
		return
	}
	if m, ok := stateOf([]byte(name)); ok {
		f.s.reject(name, "refers to "+m.kind.Noun()+" that a provider keeps, which a form cannot: send what is in it")
		return
	}
	value := f.b[e.at.start:e.at.end]
	if len(value) > maxFormValue || !utf8.Valid(value) {
		f.s.reject(name, fmt.Sprintf("must be text of at most %d bytes", maxFormValue))
		return
	}
	h := f.s.h
	switch name {
	case "model":
		if h.Model, h.model = string(value), e.at; len(value) > MaxModelName {
			h.Model = ""
			f.s.reject("model", "is longer than "+strconv.Itoa(MaxModelName)+" bytes")
		}
	case "n":
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 1 || n > maxChoices {
			f.s.reject("n", "must be from 1 to 4096")
		}
		f.s.n = n
	case "stream":
		switch string(value) {
		case "true", "True", "1":
			h.Stream = true
		case "false", "False", "0", "":
		default:
			f.s.reject("stream", "must be true or false")
		}
	case "prompt":
		f.text += len(value)
		f.s.addText(e.at, false)
	case "user":
		f.s.user = string(value)
	}
}

// file notes a file: an image, or what is to be heard.
func (f *form) file(e *entry) {
	h, data := f.s.h, f.b[e.at.start:e.at.end]
	if slices.Contains(single[:len(single)-2], e.name) {
		f.s.reject(e.name, "must be text and not a file")
		return
	}
	h.Media++
	m := media{kind: audioMedia, bytes: int32(min(len(data), 1<<30))}
	if asides[h.Op].unit == price.Image {
		m.kind = imageMedia
		m.width, m.height = imageSizeOf(bytes.NewReader(data))
	} else {
		h.Units, h.UnitsBound = audioSeconds(data)
	}
	if len(h.media) < maxMedia {
		h.media = append(h.media, m)
	} else {
		h.moreMedia++
	}
}

// What a second of audio takes, in bytes: of usual files, and of the most compressed.
const (
	secondUsual = 4000
	secondLeast = 700
)

// audioSeconds is how long audio is, by its size and by what a WAV file says that a
// second takes, and the most that it can be.
func audioSeconds(data []byte) (n, most int64) {
	size := int64(len(data))
	n, most = size/secondUsual+1, size/secondLeast+1
	if len(data) >= 44 && string(data[:4]) == "RIFF" && string(data[8:16]) == "WAVEfmt " {
		if rate := int64(binary.LittleEndian.Uint32(data[28:])); rate >= secondLeast {
			n = (size + rate - 1) / rate
		}
	}
	return n, most
}
