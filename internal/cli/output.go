package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// output is the -o flag of everything that prints data.
type output struct {
	Output string `short:"o" enum:"table,json,csv,yaml" default:"table" help:"Form of the data: ${enum}." placeholder:"FORM"`
}

// view is what a command prints: the data itself for json and yaml, rows for csv
// and for a table, and optionally a text that stands in for the table.
type view struct {
	data    any
	columns []string
	rows    [][]string
	text    string
	foot    []string // a last row of the table alone, such as a total
}

// print writes v in the form that was asked for.
func (o output) print(w io.Writer, v view) error {
	switch o.Output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v.data)
	case "yaml":
		raw, err := json.Marshal(v.data)
		if err != nil {
			return err
		}
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "csv":
		cw := csv.NewWriter(w)
		if err := cw.Write(v.columns); err != nil {
			return err
		}
		for _, row := range v.rows {
			for i := range row {
				row[i] = inert(row[i])
			}
			if err := cw.Write(row); err != nil {
				return err
			}
		}
		cw.Flush()
		return cw.Error()
	}
	if v.text != "" {
		_, err := io.WriteString(w, v.text)
		return err
	}
	return table(w, v)
}

// inert keeps a spreadsheet from taking a name for a formula: a leading = + - @
// of something that is not a number is quoted.
func inert(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if s[0] == '-' && numeric(s) {
		return s
	}
	return "'" + s
}

// table writes aligned columns, numbers to the right.
func table(w io.Writer, v view) error {
	all := append([][]string{}, v.rows...)
	if v.foot != nil {
		all = append(all, v.foot)
	}
	width := make([]int, len(v.columns))
	right := make([]bool, len(v.columns))
	for i, c := range v.columns {
		width[i], right[i] = utf8.RuneCountInString(c), len(v.rows) > 0
	}
	for r, row := range all {
		for i := range row {
			row[i] = plain(row[i])
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
			right[i] = right[i] && (numeric(row[i]) || r == len(v.rows) && row[i] == "")
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch {
			case right[i]:
				b.WriteString(pad + c)
			case i == len(cells)-1:
				b.WriteString(c)
			default:
				b.WriteString(c + pad)
			}
			if i < len(cells)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
	}
	if len(v.columns) > 0 {
		head := make([]string, len(v.columns))
		for i, c := range v.columns {
			head[i] = strings.ToUpper(c)
		}
		line(head)
	}
	for _, row := range all {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// numeric tells amounts, which are aligned to the right.
func numeric(s string) bool {
	t := strings.TrimLeft(s, "-$")
	return t != "" && t[0] >= '0' && t[0] <= '9' && strings.Trim(t, "0123456789.,") == ""
}

// plain makes a string safe for a terminal: what others have named may hold
// escape sequences. Line ends stay.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// pairs makes the two columns of one thing's fields, leaving out empty values.
func pairs(kv ...string) [][]string {
	var out [][]string
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			out = append(out, []string{kv[i], kv[i+1]})
		}
	}
	return out
}

// fieldColumns head what pairs makes.
var fieldColumns = []string{"field", "value"}

// count writes an integer.
func count[T ~int | ~int64](n T) string { return fmt.Sprintf("%d", int64(n)) }
