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
)

// reads makes a reader of a member that refers to what a backend keeps: by its id, or by
// an object that has it.
func reads(k route.StateKind, param string) func(*scanner) {
	return func(s *scanner) { s.readState(k, param) }
}

func (s *scanner) readState(k route.StateKind, param string) {
	switch s.ws() {
	case '"':
		s.readID(k, param)
	case '{':
		for o := s.object(); s.member(&o); {
			if string(s.key(&o)) == "id" && s.ws() == '"' {
				s.readID(k, param+".id")
			} else {
				s.skip()
			}
		}
	case 'n':
		s.skip()
		return
	default:
		s.skip()
	}
	s.h.Unbounded = true // nothing here tells how large it is
}

func (s *scanner) readID(k route.StateKind, param string) {
	id, _ := s.word(param, maxStateID)
	s.refer(k, param, id)
}

// readFileID reads a content part's own file, which counts once the part's type is
// known.
func (s *scanner) readFileID(p *part) {
	if s.ws() == '"' {
		p.file, _ = s.word("file_id", maxStateID)
		p.reference = true
		return
	}
	p.reference = s.present()
}

// readSourceFile reads the file of a content part's source.
func (s *scanner) readSourceFile(p *part) {
	if p.reference = s.ws() == '"'; p.reference {
		s.readID(route.StateFile, "file_id")
		return
	}
	p.reference = s.present()
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
	if p.reference = s.ws() == '"'; !p.reference {
		p.reference = s.present()
		return
	}
	uri, _ := s.word("fileUri", 1<<12)
	if strings.HasPrefix(uri, "gs://") || strings.HasPrefix(uri, "https://generativelanguage.googleapis.com/") || strings.HasPrefix(uri, "files/") {
		s.refer(route.StateFile, "fileUri", uri)
	}
}

// referPart notes the file that a content part refers to.
func (s *scanner) referPart(p *part) {
	if p.file != "" && !(s.h.Op.Dialect() == Anthropic && isToolOutput([]byte(p.kind))) {
		s.refer(route.StateFile, "file_id", p.file)
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
	if l.ws() != '{' {
		l.skip()
		return
	}
	for o := l.object(); l.member(&o); {
		if string(l.key(&o)) == "id" {
			t.kept(l, k)
		} else {
			l.skip()
		}
	}
}

// kept reads an id by which the backend keeps something for further requests.
func (t *Tap) kept(l *lexer, k route.StateKind) { t.keep(k, l.bytesOf()) }

// keep notes an id by which the backend keeps something. It costs no memory where it is
// known already.
func (t *Tap) keep(k route.StateKind, id []byte) {
	if len(id) == 0 || len(id) > maxStateID || len(t.state) >= maxKept {
		return
	}
	for i := range t.state {
		if t.state[i].Kind == k && t.state[i].ID == string(id) {
			return
		}
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
