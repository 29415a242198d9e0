package wire

import (
	"bytes"
	"strings"

	"sluice/internal/route"
)

// What a request refers to is told by the names of its members, however they are
// spelled, so that a tool that nobody has heard of is read as those that are known.

// stateName is how names of members end that refer to what a backend keeps: in small
// letters alone, without the s of a plural.
type stateName struct {
	end  string
	kind route.StateKind
}

var stateNames = []stateName{
	{"container", route.StateContainer},
	{"containerid", route.StateContainer},
	{"fileid", route.StateFile},
	{"fileuri", route.StateFile},
	{"vectorstore", route.StateStore},
	{"vectorstoreid", route.StateStore},
	{"filesearchstore", route.StateStore},
	{"filesearchstorename", route.StateStore},
	{"ragcorpus", route.StateStore},
	{"corpora", route.StateStore},
	{"datastore", route.StateStore},
	{"datastoreid", route.StateStore},
	{"skillid", route.StateSkill},
	{"promptid", route.StatePrompt},
	{"responseid", route.StateResponse},
	{"cachedcontent", route.StateCache},
	{"audioid", route.StateAudio},
}

// stateMember is what a member's name says of what it refers to.
type stateMember struct {
	kind         route.StateKind
	many, object bool // what may stand there beside a string
}

// longestName bounds the names that are looked at, in letters.
const longestName = 48

// stateOf reports whether a member of the name refers to what a backend keeps. Servers
// differ in which spellings of a name they take; case, underscores and dashes tell
// nothing here.
func stateOf(key []byte) (m stateMember, ok bool) {
	if len(key) < len("fileid") || len(key) > 2*longestName {
		return m, false
	}
	var letters [2 * longestName]byte
	name := letters[:0]
	for _, c := range key {
		switch {
		case c >= 0x80: // letters that fold to those of ASCII
			return stateOfFolded(key)
		case 'A' <= c && c <= 'Z':
			name = append(name, c|0x20)
		case c != '_' && c != '-':
			name = append(name, c)
		}
	}
	one := bytes.TrimSuffix(name, []byte("s"))
	for i := range stateNames {
		n := &stateNames[i]
		if !bytes.HasSuffix(one, []byte(n.end)) && !bytes.HasSuffix(name, []byte(n.end)) {
			continue
		}
		id := strings.HasSuffix(n.end, "id") || strings.HasSuffix(n.end, "uri") || strings.HasSuffix(n.end, "name")
		return stateMember{kind: n.kind, many: len(one) < len(name), object: !id}, true
	}
	return m, false
}

func stateOfFolded(key []byte) (m stateMember, ok bool) {
	folded := bytes.ToLower(bytes.ToUpper(key))
	for _, c := range folded {
		if c >= 0x80 {
			return m, false
		}
	}
	return stateOf(folded)
}

// anyID reports whether a member's name is that of an id of something that is not known
// here.
func anyID(key []byte) bool {
	if string(key) == "connector_id" { // those are the provider's own
		return false
	}
	name := bytes.TrimRight(key, "sS")
	n := len(name) - len("id")
	if n < 1 || !bytes.EqualFold(name[n:], []byte("id")) {
		return false
	}
	return name[n] == 'I' || name[n-1] == '_' || name[n-1] == '-'
}

// other reads a member that nothing else reads.
func (s *scanner) other(key []byte) {
	if m, ok := stateOf(key); ok {
		s.refersTo(m, string(key))
		return
	}
	s.skip()
}

// refersTo reads what a member refers to: ids, or objects that have them.
func (s *scanner) refersTo(m stateMember, param string) {
	switch c := s.ws(); {
	case c == 'n':
		s.skip()
		return
	case c == '"':
		s.readID(m.kind, param)
	case c == '{' && m.object:
		s.thing(m, true)
	case c == '[' && m.many:
		m.many = false
		for a := s.array(); s.element(&a); {
			s.refersTo(m, param)
		}
	default:
		s.skip()
		s.reject(param, "must be the id of "+m.kind.Noun()+", a string; or a list of ids where its name is in the plural")
	}
	s.h.Unbounded = true // nothing here tells how large it is
}

// things reads a value in which ids may stand at any depth.
func (s *scanner) things() {
	switch s.ws() {
	case '{':
		s.thing(stateMember{}, false)
	case '[':
		for a := s.array(); s.element(&a); {
			s.things()
		}
	case '"':
		s.resource()
	default:
		s.skip()
	}
}

// resource reads a text of a tool, which with Google may be the full name of something of
// the account, whatever its member is called.
func (s *scanner) resource() {
	in, _ := s.str()
	if !s.anyID || s.h.Op.Dialect() != Gemini || s.lexer.err != nil {
		return
	}
	raw := s.b[in.start:in.end]
	head := appendUnquoted(nil, raw[:wholeEscapes(raw, min(len(raw), 64))])
	if equalFold(head[:min(len(head), len("projects/"))], "projects/") && len(raw) <= 6*maxStateID {
		s.referFile(route.StateResource, "tools", string(appendUnquoted(nil, raw)))
	}
}

// thing reads an object in which ids may stand. Where it stands for what a member refers
// to, its own id is one.
func (s *scanner) thing(of stateMember, named bool) {
	var skill, kind string
	for o := s.object(); s.member(&o); {
		key := s.key(&o)
		m, known := stateOf(key)
		switch {
		case string(key) == "type" && s.ws() == '"':
			kind, _ = s.word("type", 1<<10)
		case named && equalFold(key, "id"):
			s.refersTo(stateMember{kind: of.kind}, "id")
		case string(key) == "skill_id" && s.ws() == '"':
			skill, _ = s.word("skill_id", maxStateID)
		case string(key) == "headers": // for somebody else's server
			s.skip()
		case string(key) == "tools" && !s.inTools:
			s.innerTools()
		case known:
			s.refersTo(m, string(key))
		case s.anyID && anyID(key):
			s.refersTo(stateMember{kind: route.StateResource, many: true, object: true}, string(key))
		default:
			s.things()
		}
	}
	if !s.ownSkill(kind, skill) {
		s.referID(route.StateSkill, "skill_id", skill)
	}
}

// ownSkill reports whether a skill is one of the provider's own, which all may use.
func (s *scanner) ownSkill(kind, id string) bool {
	if s.h.Op.Dialect() == Anthropic {
		return kind == "anthropic"
	}
	return strings.HasPrefix(id, "openai-")
}

// innerTools reads the tools within another one, or within an item: functions refer to
// nothing. Tools within those are read as the rest, so that nothing is read more than
// thrice however deep it stands.
func (s *scanner) innerTools() {
	if s.ws() != '[' {
		s.things()
		return
	}
	s.inTools = true
	for a := s.array(); s.element(&a); {
		kind := ""
		c := s.ws()
		start := s.i
		if c != '{' {
			s.skip()
			continue
		}
		for o := s.object(); s.member(&o); {
			if string(s.key(&o)) == "type" && s.ws() == '"' {
				kind, _ = s.word("type", 1<<10)
			} else {
				s.skip()
			}
		}
		if !clientWritten(kind) {
			s.again(span{start, s.i})
		}
	}
	s.inTools = false
}

// clientWritten reports whether a tool of a type is the client's own, by its schema.
func clientWritten(kind string) bool { return kind == "" || kind == "function" || kind == "custom" }

// again reads once more what was read for another purpose: a tool that the provider runs,
// with the rights of the account.
func (s *scanner) again(at span) {
	if s.lexer.err != nil {
		return
	}
	i, values, was := s.i, s.values, s.anyID
	s.i, s.anyID = at.start, true
	s.things()
	s.i, s.values, s.anyID = i, values, was
}

// againTools reads the tools of an item once more.
func (s *scanner) againTools(start int) {
	if s.lexer.err != nil {
		return
	}
	i, values, was := s.i, s.values, s.anyID
	s.i, s.anyID = start, true
	s.innerTools()
	s.i, s.values, s.anyID = i, values, was
}

// looseMember reports whether the value of a member is what some servers take for parts of the request.
func looseMember(key []byte) bool {
	switch string(key) {
	case "extra_body", "tool_resources", "plugins", "attachments", "image", "images", "mask":
		return true
	}
	return false
}

// loose reads a member of the request, or of a message, that nothing else reads.
func (s *scanner) loose(key []byte) {
	if looseMember(key) {
		s.things()
		return
	}
	s.other(key)
}

// readStoredPrompt reads a prompt that the provider keeps. Its variables may be files;
// their names are the client's.
func (s *scanner) readStoredPrompt() {
	if s.ws() != '{' {
		s.refersTo(stateMember{kind: route.StatePrompt}, "prompt")
		return
	}
	s.h.Unbounded = true
	for o := s.object(); s.member(&o); {
		switch key := s.key(&o); string(key) {
		case "id":
			s.refersTo(stateMember{kind: route.StatePrompt}, "prompt.id")
		case "variables":
			if s.ws() != '{' {
				s.skip()
				continue
			}
			for v := s.object(); s.member(&v); {
				s.content()
			}
		default:
			s.other(key)
		}
	}
}
