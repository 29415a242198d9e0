package jobs

import (
	"strconv"
	"strings"

	"sluice"
)

// FileID names a file. It is unique over all tenants and tells nothing.
type FileID string

// JobID names a job: the prefix of its kind and random digits.
type JobID string

// filePrefix begins the id of every file.
const filePrefix = "file-"

// What begins the ids of lines: that of the request that it ran as, and of one that never
// ran.
const (
	requestPrefix = "batch_req_"
	linePrefix    = "batch_line_"
)

// RequestOf is the id of the request that one claim of a line runs as. It is not
// minted, so that who takes a line over from a worker that is lost knows which request
// of that worker's is not the line's any more.
func RequestOf(job JobID, line int, claim int64) sluice.RequestID {
	_, digits, _ := strings.Cut(string(job), "_")
	b := make([]byte, 0, len(requestPrefix)+len(digits)+20)
	b = append(append(b, requestPrefix...), digits...)
	b = strconv.AppendInt(append(b, '_'), int64(line), 10)
	return sluice.RequestID(strconv.AppendInt(append(b, '_'), claim, 10))
}

// lineOf is the id of a line that never ran: of what no ledger knows, it says so.
func lineOf(job JobID, line int) string {
	_, digits, _ := strings.Cut(string(job), "_")
	return linePrefix + digits + "_" + strconv.Itoa(line)
}

// lineNumber is the number of the line that an id of either form is of; 0 if it is none.
func lineNumber(id string) int {
	rest, ran := strings.CutPrefix(id, requestPrefix)
	if !ran {
		rest = strings.TrimPrefix(id, linePrefix)
	}
	_, rest, _ = strings.Cut(rest, "_")
	digits, _, _ := strings.Cut(rest, "_")
	n, _ := strconv.Atoi(digits)
	return n
}

// IsRequest reports whether a request is one of a line.
func IsRequest(id sluice.RequestID) bool { return strings.HasPrefix(string(id), requestPrefix) }
