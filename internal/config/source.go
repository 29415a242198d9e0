package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sluice"
)

// Env looks an environment variable up, as os.LookupEnv does.
type Env func(name string) (string, bool)

// MaxFile bounds a configuration file, and MaxSecretFile one that a secret is
// read from, in bytes.
const (
	MaxFile       = 16 << 20
	MaxSecretFile = 64 << 10
)

// shortest is the length from which the value of a variable is kept out of
// messages: hiding every "1" would make them unreadable.
const shortest = 6

// A reference ${NAME} must not be parsed as YAML: inside of a flow mapping its
// braces would be read as one. Before parsing they are exchanged for two
// characters of the private use area, one for one ("${" and "}" are three
// columns, so the first stands twice), so that every column stays true.
const (
	refOpen  = '\ue000'
	refClose = '\ue001'
)

var (
	reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	reserved  = regexp.MustCompile("[\ue000\ue001]")
	hidden    = regexp.MustCompile("\ue000\ue000([A-Za-z_][A-Za-z0-9_]*)\ue001")
)

// readFile reads at most limit bytes of a regular file, so that a name given by
// mistake can neither block nor fill the memory.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return b, nil
}

// parseYAML finds the one document of a file; nil if it is empty.
func parseYAML(name string, data []byte) (ast.Node, Problems) {
	if len(data) > MaxFile {
		return nil, Problems{{File: name, Cause: fmt.Sprintf("the file has %d bytes, the bound is %d", len(data), MaxFile)}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark of some editors
	if at := notUTF8(data); at >= 0 {
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		return nil, Problems{{File: name, Pos: Pos{line, 1}, Cause: "the line is not UTF-8", Fix: "save the file as UTF-8"}}
	}
	if loc := reserved.FindIndex(data); loc != nil {
		line := 1 + strings.Count(string(data[:loc[0]]), "\n")
		return nil, Problems{{File: name, Pos: Pos{line, 1}, Cause: "the line has a character of Unicode's private use area", Fix: "remove it"}}
	}
	data = reference.ReplaceAll(data, []byte("\ue000\ue000$1\ue001"))
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p := Problem{File: name, Cause: "not valid YAML: " + firstLine(err.Error()), Fix: "check indentation, quotes and brackets around this place"}
		if ye, ok := errors.AsType[yaml.Error](err); ok {
			p.Cause = "not valid YAML: " + ye.GetMessage()
			if t := ye.GetToken(); t != nil && t.Position != nil {
				p.Pos = Pos{t.Position.Line, t.Position.Column}
			}
		}
		if p.Line == 0 {
			p.Pos = Pos{1, 1}
		}
		if col := tabIndents(data, p.Line); col > 0 {
			p.Col, p.Cause, p.Fix = col, "a tab indents the line, which YAML does not take", "indent with spaces"
		}
		return nil, Problems{p}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, Problems{{File: name, Pos: nodePos(doc.Body), Cause: "the file has a second document", Fix: "keep one document and no --- between parts"}}
		}
		body = doc.Body
	}
	return body, nil
}

// notUTF8 finds the first byte that is not UTF-8, -1 if there is none.
func notUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n <= 1 {
			return at
		}
		at += n
	}
	return -1
}

// tabIndents finds the column of a tab in a line's indentation, 0 if there is none.
func tabIndents(data []byte, line int) int {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	if line > len(lines) {
		return 0
	}
	text := lines[line-1]
	return 1 + bytes.IndexByte(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t')
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// expand exchanges references for their values. On a missing variable it
// reports and returns false.
func (d *decoder) expand(s string, pos Pos, path string) (string, bool) {
	if !strings.ContainsRune(s, refOpen) {
		if strings.Contains(s, "${") {
			d.report(pos, path, "write ${NAME} with a name of letters, digits and underscores", "has a malformed reference to an environment variable")
			return "", false
		}
		return s, true
	}
	ok := true
	out := hidden.ReplaceAllStringFunc(s, func(ref string) string {
		name := strings.Trim(ref, string([]rune{refOpen, refClose}))
		v, found := d.env(name)
		if !found {
			d.report(pos, path, "set it in the environment of the process; a secret may be read from file:/path instead", "environment variable %s is not set", name)
			ok = false
		}
		if len(v) >= shortest {
			d.values[v] = "${" + name + "}"
		}
		return v
	})
	return out, ok
}

// secret reads a credential: ${NAME}, file:/path, or, with a warning of Lint,
// the credential itself.
func (d *decoder) secret(n node, path string) (Secret, bool) {
	if d.rehearsal {
		return Secret{Secret: sluice.NewSecret("rehearsal")}, true
	}
	raw, pos := rawText(n), nodePos(n)
	text, ok := d.scalar(n, path)
	if !ok {
		return Secret{}, false
	}
	if strings.HasPrefix(raw, withheld) {
		if raw, ok = d.unmark(pos, path, raw); !ok {
			return Secret{}, false
		}
		if text, ok = d.expand(raw, pos, path); !ok {
			return Secret{}, false
		}
	}
	if stands(raw) {
		at := nodePos(d.unwrap(n, path))
		s := sluice.NewSecret(raw)
		d.standing = append(d.standing, standing{at, &s})
	}
	if name, isFile := strings.CutPrefix(text, "file:"); isFile {
		b, err := d.readFile(name, MaxSecretFile)
		if err != nil {
			d.report(pos, path, "write file: and the absolute path of a file that the process can read", "cannot read the secret: %s", err)
			return Secret{}, false
		}
		text = strings.TrimSpace(string(b))
	}
	if text == "" {
		d.report(pos, path, "give it a value, or leave the field out", "the secret is empty")
		return Secret{}, false
	}
	open := !strings.ContainsRune(raw, refOpen) && !strings.HasPrefix(raw, "file:")
	return Secret{Secret: sluice.NewSecret(text), Open: open}, true
}
