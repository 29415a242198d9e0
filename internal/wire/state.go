package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/route"
)

// What is believed of ids of what backends keep.
const (
	maxStateID = 512  // bytes
	maxRefs    = 256  // different ones that a request may refer to
	maxMention = 4096 // references in all
	maxKept    = 64   // that are taken from one answer
	maxItems   = 256  // likewise, of its own items
)

// reads makes a reader of a member that refers to what a backend keeps: by its id, or by
// an object that has it.
func reads(k route.StateKind, param string) func(*scanner) {
	return func(s *scanner) { s.readState(k, param) }
}

func (s *scanner) readState(k route.StateKind, param string) {
	s.refersTo(stateMember{kind: k, object: true}, param)
}

// readID reads an id, which is written in one way alone.
func (s *scanner) readID(k route.StateKind, param string) {
	id, _ := s.word(param, maxStateID)
	s.referID(k, param, id)
}

// referID notes an id. One with characters that no provider puts into ids is refused:
// some server may read it as another.
func (s *scanner) referID(k route.StateKind, param, id string) {
	if s.h.Op.Dialect() == Gemini {
		s.referFile(k, param, id)
		return
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '?' || c == '#' || c == '\\' {
			s.reject(param, "has a character that no id of "+k.Noun()+" has: write it as it was given")
			return
		}
	}
	if strings.Contains(id, "..") || strings.Contains(id, "//") {
		s.reject(param, "is a path and no id of "+k.Noun()+": write it as it was given")
		return
	}
	s.refer(k, param, id)
}

// referFile notes what an address stands for, unless it is on the web for all.
func (s *scanner) referFile(k route.StateKind, param, uri string) {
	if uri == "" {
		return
	}
	switch name, w := fileName(uri); {
	case w == noFile:
		s.reject(param, "is no plain address: write the name of what was uploaded, gs:// and a bucket, or https:// and a host")
	case w == keptFile:
		s.refer(k, param, name)
	case k != route.StateFile: // an address is no name of it
		s.reject(param, "is no name of "+k.Noun())
	}
}

// readFileID reads a content part's own file, which counts once the part's type is
// known.
func (s *scanner) readFileID(p *part) {
	p.reference = s.ws() == '"'
	p.file, _ = s.word("file_id", maxStateID)
}

// readSourceFile reads the file of a content part's source.
func (s *scanner) readSourceFile(p *part) {
	p.reference = s.ws() == '"'
	s.readID(route.StateFile, "file_id")
}

// readReference reads what refers to something that is not told apart from the rest of a
// request.
func (s *scanner) readReference() {
	if !s.null() {
		s.skip()
		s.h.Unbounded = true
	}
}

// readFileURI reads a file by its address: one of Gemini's own files, or one in a bucket,
// is read with the rights of the account.
func (s *scanner) readFileURI(p *part) {
	p.reference = s.ws() == '"'
	uri, _ := s.word("fileUri", 1<<12)
	s.referFile(route.StateFile, "fileUri", uri)
}

// referPart notes the file that a content part refers to.
func (s *scanner) referPart(p *part) {
	if p.file != "" && !(s.h.Op.Dialect() == Anthropic && isToolOutput([]byte(p.kind))) {
		s.referID(route.StateFile, "file_id", p.file)
	}
}

// refer notes an id that the request refers to. An empty one is none: the backend says
// what it thinks of it.
func (s *scanner) refer(k route.StateKind, param, id string) {
	if id == "" {
		return
	}
	s.mentions++
	ref := route.State{Kind: k, ID: id}
	switch {
	case s.mentions > maxMention, len(s.h.Refs) >= maxRefs && !slices.Contains(s.h.Refs, ref):
		s.reject(param, "is one reference too many: a request may name at most "+strconv.Itoa(maxRefs)+" things that a provider keeps")
	case !slices.Contains(s.h.Refs, ref):
		s.h.Refs = append(s.h.Refs, ref)
	}
}

// keptContainer reads what an answer says of the container that it used.
func (t *Tap) keptContainer(l *lexer) { t.keptIn(l, route.StateContainer) }

// keptIn reads an object of an answer that has an id of what the backend keeps.
func (t *Tap) keptIn(l *lexer, k route.StateKind) {
	for o := l.objectIfAny(); l.member(&o); {
		if string(l.key(&o)) == "id" {
			t.kept(l, k)
		} else {
			l.skip()
		}
	}
}

// otherPart reads what a part of Gemini's has beside text, which may be a file, by its
// address. It counts as content.
func (t *Tap) otherPart(l *lexer, in *object) bool {
	if string(l.key(in)) != "fileData" || l.ws() != '{' {
		l.skip()
		return true
	}
	for o := l.object(); l.member(&o); {
		if string(l.key(&o)) != "fileUri" {
			l.skip()
		} else if name, w := fileName(string(l.bytesOf())); w == keptFile {
			t.keep(route.StateFile, []byte(name))
		}
	}
	return true
}

// kept reads an id by which the backend keeps something for further requests.
func (t *Tap) kept(l *lexer, k route.StateKind) { t.keep(k, l.bytesOf()) }

// keep notes an id by which the backend keeps something. It costs no memory where it is
// known already.
func (t *Tap) keep(k route.StateKind, id []byte) {
	if len(id) == 0 || len(id) > maxStateID {
		return
	}
	most, n := maxKept, 0
	if k == route.StateItem { // which are many, and push out nothing else
		most = maxItems
	}
	for i := range t.state {
		switch of := t.state[i].Kind; {
		case of == k && t.state[i].ID == string(id):
			return
		case (of == route.StateItem) == (k == route.StateItem):
			n++
		}
	}
	if n >= most {
		return
	}
	t.state = append(t.state, route.State{Kind: k, ID: string(id)})
}

// State is what the answer, as far as it has come, says that the backend keeps for
// further requests, in the order in which it came. The slice grows and is not changed.
func (t *Tap) State() []route.State { return t.state }

// toolFiles reads the result of a tool that the provider has run: the files that it has
// written. Other objects that name files are the tool's own words.
func (t *Tap) toolFiles(l *lexer) {
	switch l.ws() {
	case '{':
		t.toolFile(l)
	case '[':
		for a := l.array(); l.element(&a); {
			t.toolFiles(l)
		}
	default:
		l.skip()
	}
}

func (t *Tap) toolFile(l *lexer) {
	var kind, id []byte
	for o := l.object(); l.member(&o); {
		switch string(l.key(&o)) {
		case "type":
			kind = l.bytesOf()
		case "file_id":
			id = l.bytesOf()
		case "content":
			t.toolFiles(l)
		default:
			l.skip()
		}
	}
	if isToolOutput(kind) {
		t.keep(route.StateFile, id)
	}
}

// isToolOutput reports whether a block's type is that of a file which a provider's tool
// has written. A request that repeats one tells of it and does not read it.
func isToolOutput(kind []byte) bool { return bytes.HasSuffix(kind, []byte("code_execution_output")) }
