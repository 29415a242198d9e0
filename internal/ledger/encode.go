package ledger

import (
	"strconv"

	"sluice"
	"sluice/internal/ladder"
)

// The order of fields is the format. A change of it is a new formatVersion with
// a decoder beside the old one. Only what may be empty may be appended without: it is
// written where it is not, and read where something is left.

func appendReserve(b []byte, r *Reserve) []byte {
	start := len(b)
	b = beginFrame(b, kindReserve)
	b = appendText(b, r.Request)
	b = appendTime(b, r.At)
	b = appendText(b, r.Principal.Tenant)
	b = appendText(b, r.Principal.Project)
	b = appendText(b, r.Principal.Key)
	b = appendText(b, r.Principal.User)
	b = appendText(b, r.Task)
	b = appendLabels(b, r.Labels)
	b = append(b, byte(r.Class))
	b = appendText(b, r.Model)
	b = appendBool(b, r.Stream)
	b = appendText(b, r.Operation)
	b = appendText(b, r.Dialect)
	b = appendText(b, r.Policy)
	b = appendInt(b, int64(r.EstimatedInput))
	b = appendInt(b, int64(r.OutputBound))
	b = appendInt(b, int64(r.HeldSpend))
	b = appendLast(b, string(r.Principal.Run), string(r.ShadowOf))
	return endFrame(b, start)
}

// appendLast writes texts at the end of a record, but for those at its very end that
// are empty.
func appendLast(b []byte, texts ...string) []byte {
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	for _, s := range texts {
		b = appendText(b, s)
	}
	return b
}

// last reads the next of them.
func (d *decoder) last() string {
	if d.bad || d.s == "" {
		return ""
	}
	return d.text()
}

func (d *decoder) reserve() (r Reserve) {
	r.Request = sluice.RequestID(d.text())
	r.At = d.time()
	r.Principal.Tenant = sluice.TenantID(d.text())
	r.Principal.Project = sluice.ProjectID(d.text())
	r.Principal.Key = sluice.KeyID(d.text())
	r.Principal.User = sluice.UserID(d.text())
	r.Task = d.text()
	r.Labels = d.labels()
	r.Class = sluice.Class(d.byte())
	r.Model = sluice.ModelID(d.text())
	r.Stream = d.bool()
	r.Operation = d.text()
	r.Dialect = d.text()
	r.Policy = d.text()
	r.EstimatedInput = sluice.Tokens(d.int())
	r.OutputBound = sluice.Tokens(d.int())
	r.HeldSpend = sluice.Nano(d.int())
	r.Principal.Run = sluice.RunID(d.last())
	r.ShadowOf = sluice.RequestID(d.last())
	return r
}

func appendDispatch(b []byte, r *Dispatch) []byte {
	start := len(b)
	b = beginFrame(b, kindDispatch)
	b = appendText(b, r.Request)
	b = appendInt(b, int64(r.Attempt))
	b = appendTime(b, r.At)
	b = appendText(b, r.Pool)
	b = appendText(b, r.Backend)
	b = appendText(b, r.Provider)
	b = appendText(b, r.UpstreamModel)
	b = appendText(b, r.PriceVersion)
	b = appendUsage(b, &r.Estimate)
	b = appendInt(b, int64(r.Cost))
	b = appendInt(b, int64(r.CostHigh))
	return endFrame(b, start)
}

func (d *decoder) dispatch() (r Dispatch) {
	r.Request = sluice.RequestID(d.text())
	r.Attempt = int(d.int())
	r.At = d.time()
	r.Pool = sluice.PoolID(d.text())
	r.Backend = sluice.BackendID(d.text())
	r.Provider = sluice.ProviderID(d.text())
	r.UpstreamModel = d.text()
	r.PriceVersion = d.text()
	r.Estimate = d.usage()
	r.Cost = sluice.Nano(d.int())
	r.CostHigh = sluice.Nano(d.int())
	return r
}

func appendCheckpoint(b []byte, r *Checkpoint) []byte {
	start := len(b)
	b = beginFrame(b, kindCheckpoint)
	b = appendText(b, r.Request)
	b = appendInt(b, int64(r.Attempt))
	b = appendTime(b, r.At)
	b = appendUsage(b, &r.Usage)
	b = appendInt(b, int64(r.Cost))
	b = appendInt(b, int64(r.CostHigh))
	return endFrame(b, start)
}

func (d *decoder) checkpoint() (r Checkpoint) {
	r.Request = sluice.RequestID(d.text())
	r.Attempt = int(d.int())
	r.At = d.time()
	r.Usage = d.usage()
	r.Cost = sluice.Nano(d.int())
	r.CostHigh = sluice.Nano(d.int())
	return r
}

func appendRelease(b []byte, id sluice.RequestID) []byte {
	start := len(b)
	b = beginFrame(b, kindRelease)
	b = appendText(b, id)
	return endFrame(b, start)
}

func appendMark(b []byte, p lsn) []byte {
	start := len(b)
	b = beginFrame(b, kindMark)
	b = appendInt(b, int64(p))
	return endFrame(b, start)
}

// appendEntry begins with what replay needs: request, attempt and final.
func appendEntry(b []byte, e *Entry) []byte {
	start := len(b)
	b = beginFrame(b, kindEntry)
	b = appendText(b, e.Request)
	b = appendInt(b, int64(e.Attempt))
	b = appendBool(b, e.Final)
	b = appendTime(b, e.At)
	b = appendTime(b, e.Ended)
	b = appendText(b, e.Tenant)
	b = appendText(b, e.Project)
	b = appendText(b, e.Key)
	b = appendText(b, e.User)
	b = appendText(b, e.Task)
	b = appendLabels(b, e.Labels)
	b = append(b, byte(e.Class))
	b = appendText(b, e.Model)
	b = appendText(b, e.Pool)
	b = appendText(b, e.Backend)
	b = appendText(b, e.Provider)
	b = appendText(b, e.UpstreamModel)
	b = appendText(b, e.ServedModel)
	b = appendText(b, e.UpstreamRequestID)
	b = appendText(b, e.Policy)
	b = append(b, byte(e.Outcome), byte(e.Reason))
	b = appendInt(b, int64(e.Status))
	b = appendBool(b, e.Late)
	b = appendBool(b, e.Stream)
	b = appendText(b, e.Operation)
	b = appendText(b, e.Dialect)
	b = appendUsage(b, &e.Usage)
	b = appendInt(b, int64(e.Cost))
	b = appendInt(b, int64(e.CostHigh))
	b = appendText(b, e.PriceVersion)
	b = appendInt(b, int64(e.EstimatedInput))
	b = appendInt(b, int64(e.OutputBound))
	b = appendInt(b, int64(e.HeldSpend))
	b = appendSpan(b, e.Queued)
	b = appendSpan(b, e.FirstToken)
	b = appendSpan(b, e.Duration)
	detail := e.Detail
	if len(detail) > MaxDetail {
		detail = nil
	}
	b = appendInt(b, int64(len(detail)))
	b = append(b, detail...)
	b = appendLast(b, string(e.Run), string(e.ShadowOf), e.Finish, few(e.Usage.Units), few(int64(e.Tier)))
	return endFrame(b, start)
}

// entryKey reads the part of an entry that replay needs.
func (d *decoder) entryKey() (id sluice.RequestID, attempt int, final bool) {
	return sluice.RequestID(d.text()), int(d.int()), d.bool()
}

func (d *decoder) entry() (e Entry) {
	e.Request, e.Attempt, e.Final = d.entryKey()
	e.At = d.time()
	e.Ended = d.time()
	e.Tenant = sluice.TenantID(d.text())
	e.Project = sluice.ProjectID(d.text())
	e.Key = sluice.KeyID(d.text())
	e.User = sluice.UserID(d.text())
	e.Task = d.text()
	e.Labels = d.labels()
	e.Class = sluice.Class(d.byte())
	e.Model = sluice.ModelID(d.text())
	e.Pool = sluice.PoolID(d.text())
	e.Backend = sluice.BackendID(d.text())
	e.Provider = sluice.ProviderID(d.text())
	e.UpstreamModel = d.text()
	e.ServedModel = d.text()
	e.UpstreamRequestID = d.text()
	e.Policy = d.text()
	e.Outcome = sluice.Outcome(d.byte())
	e.Reason = sluice.Reason(d.byte())
	e.Status = int(d.int())
	e.Late = d.bool()
	e.Stream = d.bool()
	e.Operation = d.text()
	e.Dialect = d.text()
	e.Usage = d.usage()
	e.Cost = sluice.Nano(d.int())
	e.CostHigh = sluice.Nano(d.int())
	e.PriceVersion = d.text()
	e.EstimatedInput = sluice.Tokens(d.int())
	e.OutputBound = sluice.Tokens(d.int())
	e.HeldSpend = sluice.Nano(d.int())
	e.Queued = d.span()
	e.FirstToken = d.span()
	e.Duration = d.span()
	n := d.int()
	if n < 0 || n > int64(len(d.s)) {
		d.bad = true
		return e
	}
	if n > 0 {
		e.Detail = []byte(d.s[:n])
		d.s = d.s[n:]
	}
	e.Run = sluice.RunID(d.last())
	e.ShadowOf = sluice.RequestID(d.last())
	e.Finish = d.last()
	e.Usage.Units, _ = strconv.ParseInt(d.last(), 10, 64)
	tier, _ := strconv.ParseUint(d.last(), 10, 8)
	e.Tier = ladder.Tier(tier)
	return e
}

// few is the text of a figure that is nearly always 0, which is empty.
func few(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
