package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"sluice"
)

// Version is that of the protocol by which hooks are called.
const Version = 1

// Question is what a hook is asked: the body of the call.
type Question struct {
	Version   int              `json:"version"`
	ID        sluice.RequestID `json:"id"` // of the request
	Hook      string           `json:"hook"`
	Stage     string           `json:"stage"`
	Tenant    sluice.TenantID  `json:"tenant"`
	Project   sluice.ProjectID `json:"project"`
	Model     sluice.ModelID   `json:"model"`
	Operation string           `json:"operation"`
	Stream    bool             `json:"stream,omitempty"`
	Task      string           `json:"task,omitempty"`
	Risk      sluice.Risk      `json:"risk"`             // label so far
	Status    int              `json:"status,omitempty"` // of the answer
	Backend   sluice.BackendID `json:"backend,omitempty"`
	Final     bool             `json:"final,omitempty"` // nothing of these texts follows
	Texts     []Text           `json:"texts"`
}

// Text is one text of a request or an answer.
type Text struct {
	Path  string `json:"path"` // where it stands, as messages[0].content
	Text  string `json:"text"`
	JSON  bool   `json:"json,omitempty"`  // it is a JSON document itself, and must stay one
	Fixed bool   `json:"fixed,omitempty"` // it cannot be redacted: a signature covers it
	Seen  int    `json:"seen,omitempty"`  // bytes at its beginning that were shown before
}

// Answer is what a hook says.
type Answer struct {
	Version int         `json:"version"` // 0 is 1
	Verdict string      `json:"verdict"` // allow, redact, refuse or risk
	Risk    sluice.Risk `json:"risk"`    // of risk, and beside any other but refuse
	Edits   []TextEdit  `json:"edits"`   // of redact
	Why     string      `json:"why"`     // a word for the ledger: at most 64 of a-z, 0-9, -, _ and .
	Message string      `json:"message"` // of refuse: for the client, at most 300 bytes; it is recorded nowhere
	Status  int         `json:"status"`  // of refuse: 400, which is also 0, or 403
}

// TextEdit replaces the bytes [Start, End) of a text; all of it where neither is
// given.
type TextEdit struct {
	Text  int    `json:"text"` // of Question.Texts
	Start *int   `json:"start"`
	End   *int   `json:"end"`
	With  string `json:"with"`
}

// Verdict is what was decided.
type Verdict uint8

// The verdicts.
const (
	Allow Verdict = iota
	Redact
	Refuse
	LabelRisk
	Failed      // no verdict came; what follows is by the hook's failure mode
	NumVerdicts = iota
)

var verdictNames = [NumVerdicts]string{"allow", "redact", "refuse", "risk", "failed"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

const (
	maxWhy     = 64
	maxMessage = 300
)

// ruling is an answer that has been checked.
type ruling struct {
	verdict Verdict
	risk    sluice.Risk
	why     string
	message string
	status  int
	edits   [][]Edit // by text
}

// parseAnswer reads a hook's answer to a question and holds it to the protocol.
func parseAnswer(body []byte, q *Question) (r ruling, err error) {
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return r, fmt.Errorf("the answer is not JSON of this protocol: %w", err)
	}
	if a.Version != 0 && a.Version != Version {
		return r, fmt.Errorf("version %d is not %d", a.Version, Version)
	}
	i := slices.Index(verdictNames[:Failed], a.Verdict)
	if i < 0 {
		return r, fmt.Errorf("verdict %.20q is none of allow, redact, refuse, risk", a.Verdict)
	}
	r.verdict, r.risk, r.status = Verdict(i), a.Risk, a.Status
	switch {
	case !word(a.Why):
		return r, errors.New("why is no word of at most 64 of a-z, 0-9, full stops, - and _")
	case r.verdict == LabelRisk && a.Risk == sluice.RiskNone:
		return r, errors.New("verdict risk has no risk")
	case r.verdict == Redact && len(a.Edits) == 0:
		return r, errors.New("verdict redact has no edits")
	case r.verdict != Redact && len(a.Edits) > 0:
		return r, errors.New("there are edits, and the verdict is not redact")
	case a.Status != 0 && a.Status != 400 && a.Status != 403:
		return r, fmt.Errorf("status %d is neither 400 nor 403", a.Status)
	}
	r.why, r.message = a.Why, clipped(a.Message)
	if r.verdict == Redact {
		r.edits, err = checkEdits(a.Edits, q)
	}
	return r, err
}

func word(s string) bool {
	if len(s) > maxWhy {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || digits[c] || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

func clipped(s string) string {
	if len(s) > maxMessage {
		n := maxMessage
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return s
}

// checkEdits puts edits in order by text. Each must lie within a text that may be
// changed, begin and end between characters, and overlap no other.
func checkEdits(edits []TextEdit, q *Question) ([][]Edit, error) {
	out := make([][]Edit, len(q.Texts))
	for n, e := range edits {
		if e.Text < 0 || e.Text >= len(q.Texts) {
			return nil, fmt.Errorf("edit %d is of text %d, and there are %d", n, e.Text, len(q.Texts))
		}
		t := &q.Texts[e.Text]
		start, end := 0, len(t.Text)
		if e.Start != nil {
			start = *e.Start
		}
		if e.End != nil {
			end = *e.End
		}
		switch {
		case t.Fixed:
			return nil, fmt.Errorf("edit %d is of text %d, which cannot be redacted", n, e.Text)
		case start < 0 || end < start || end > len(t.Text):
			return nil, fmt.Errorf("edit %d is of bytes %d to %d of %d", n, start, end, len(t.Text))
		case start < len(t.Text) && !utf8.RuneStart(t.Text[start]), end < len(t.Text) && !utf8.RuneStart(t.Text[end]):
			return nil, fmt.Errorf("edit %d begins or ends within a character", n)
		case !utf8.ValidString(e.With):
			return nil, fmt.Errorf("edit %d is no UTF-8", n)
		}
		out[e.Text] = append(out[e.Text], Edit{start, end, []byte(e.With)})
	}
	for i, list := range out {
		slices.SortStableFunc(list, func(a, b Edit) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
		for k := 1; k < len(list); k++ {
			if list[k].Start < list[k-1].End {
				return nil, fmt.Errorf("edits of text %d overlap", i)
			}
		}
		if q.Texts[i].JSON && len(list) > 0 && !isJSON(spliced([]byte(q.Texts[i].Text), list)) {
			return nil, fmt.Errorf("with its edits text %d is no JSON any more", i)
		}
	}
	return out, nil
}
