package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// render appends a result as one line of a file, as the clients of the job's kind read it,
// and reports whether it belongs with the errors. Beside the dialect's own members each has
// one of the gateway's, which client libraries pass over.
func render(b []byte, j *Job, r *Result) (line []byte, failed bool) {
	if j.Kind == MessageBatch {
		return renderMessage(b, r), false
	}
	return renderOpenAI(b, j.ID, r), r.State != LineSucceeded
}

// given reports whether a line has a result that its client gets: of a batch of OpenAI's
// that was cancelled those that have begun, as that dialect has it, of all others each.
func given(j *Job, r *Result) bool {
	return j.Kind != OpenAIBatch || r.State != LineCancelled || r.Request != ""
}

// What is said of lines that never ran, or that were ended.
const (
	expiredMessage   = "This request had no answer when the completion window expired. If it had begun, it is charged for what it used."
	cancelledMessage = "This request had begun and had no answer when the batch was cancelled. It is charged for what it used."
)

func renderOpenAI(b []byte, job JobID, r *Result) []byte {
	b = append(b, `{"id":`...)
	b = appendText(b, cmp.Or(string(r.Request), lineOf(job, r.Line)))
	b = append(b, `,"custom_id":`...)
	b = appendText(b, r.CustomID)
	switch r.State {
	case LineExpired, LineCancelled:
		code, message := "batch_expired", expiredMessage
		if r.State == LineCancelled {
			code, message = "batch_cancelled", cancelledMessage
		}
		b = append(b, `,"response":null,"error":{"code":`...)
		b = appendText(b, code)
		b = append(b, `,"message":`...)
		b = appendText(b, message)
		b = append(b, '}')
	default:
		b = append(b, `,"response":{"status_code":`...)
		b = strconv.AppendInt(b, int64(r.Status), 10)
		b = append(b, `,"request_id":`...)
		b = appendText(b, string(r.Request))
		b = append(b, `,"body":`...)
		b = appendBody(b, r.Body)
		b = append(b, `},"error":null`...)
	}
	return append(appendTold(b, r), "}\n"...)
}

// appendTold adds what the gateway tells of a line, if it ran: the id for sluice explain,
// and what stands in headers of an answer that comes at once.
func appendTold(b []byte, r *Result) []byte {
	if r.Request == "" {
		return b
	}
	own := asTold{r.Request, r.Told}
	own.Header = nil
	text, err := json.Marshal(own)
	if err != nil { // no text fails
		return b
	}
	return append(append(b, `,"sluice":`...), text...)
}

func renderMessage(b []byte, r *Result) []byte {
	b = append(b, `{"custom_id":`...)
	b = appendText(b, r.CustomID)
	b = append(b, `,"result":{"type":`...)
	switch r.State {
	case LineSucceeded:
		b = append(b, `"succeeded","message":`...)
		b = appendBody(b, r.Body)
	case LineFailed:
		b = append(b, `"errored","error":`...)
		b = appendBody(b, r.Body)
	case LineExpired:
		b = append(b, `"expired"`...)
	default:
		b = append(b, `"canceled"`...)
	}
	return append(appendTold(append(b, '}'), r), "}\n"...)
}

// appendBody adds an answer as it is, but on one line. What is not JSON becomes a text.
func appendBody(b, body []byte) []byte {
	v := jsontext.Value(body)
	if !v.IsValid() {
		return appendText(b, string(body))
	}
	if bytes.IndexByte(body, '\n') >= 0 {
		v = v.Clone()
		if v.Compact() != nil {
			return appendText(b, string(body))
		}
	}
	return append(b, v...)
}

func appendText(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // no string fails
		return append(b, `""`...)
	}
	return append(b, text...)
}
