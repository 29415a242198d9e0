package dialect

import (
	"net/http"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// Translation is a client's request as another operation of a backend. It is made
// once and serves all attempts at such backends.
type Translation struct {
	Op     wire.Operation // of the backend
	Report Report
	Err    *sluice.Error // why the request may not be sent so; nil if it may

	Head *wire.Head // of Body
	Body []byte
	Echo []byte // members of the request that the client's dialect repeats in its answers

	into     string
	unlisted int // losses that Report does not list
}

// Dropped lists what the translation lost, bounded: what it does not list is counted.
func (t *Translation) Dropped() string { return t.Report.paths(t.unlisted) }

// Options says how a request is translated.
type Options struct {
	Warn bool // what is left out or approximated is told, and not refused
	// MaxOutput bounds the output in tokens where the client names none and the
	// target needs one.
	MaxOutput int64
	// Model is the backend's name of its model, by which a target chooses between what
	// its models understand. Empty takes the newest.
	Model string
	// Thoughtless says that its model is known not to reason.
	Thoughtless bool
	// Media is what URLs in the request have led to, by URL: see Wants. It has no URL of
	// its own.
	Media map[string]Media
}

// Translate puts a request into another operation. REQUIRES: both are translated:
// see Operation. head is what wire.Scan found in body. What cannot be carried stands
// in the translation's Report, and decides with the options whether it has an Err.
func Translate(head *wire.Head, body []byte, header http.Header, to wire.Operation, o Options) *Translation {
	from, target := codecOf(head.Op), codecOf(to)
	t := &Translation{Op: to, into: into(from, target)}
	r, err := from.parseRequest(body)
	if err != nil {
		t.Err = misread(err)
		return t
	}
	r.Model, r.Stream = head.Model, head.Stream // some tell it in the path
	t.Echo = r.Echo
	betas(r, header)
	if target.bounded && r.MaxOutput == 0 && !head.HasMaxOutput {
		r.MaxOutput = o.MaxOutput
	}
	rep := reporter{from: from, to: target, model: o.Model, thoughtless: o.Thoughtless}
	r.disown(&rep)
	r.choiceless(&rep)
	r.fetched(&rep, o.Media)
	t.Body = target.emitRequest(make([]byte, 0, len(body)+len(body)/8+256), r, &rep)
	rep.report.sort()
	t.Report, t.unlisted = rep.report, rep.unlisted
	if t.Err = t.Report.refusal(target, o.Warn); t.Err != nil {
		t.Body = nil
		return t
	}
	h, err := wire.ScanIn(to, t.Body, wire.InPath{Model: head.Model, Stream: head.Stream})
	if err != nil { // the client's own values, in the other dialect's words
		t.Err, t.Body = sluice.AsError(err), nil
		return t
	}
	t.Head = h
	return t
}

// choiceless tells of a tool that must be called where there are none: a dialect that is
// told so refuses it, and one that is not would answer something else.
func (r *Request) choiceless(rep *reporter) {
	others := r.asks(FeatureServerTool) || r.asks(FeatureCustomTool) || r.asks(FeatureFunctions)
	if len(r.Tools) == 0 && r.Choice.Kind >= ChoiceAny && !others {
		rep.at(FeatureChoiceless, top())
		r.Choice = Choice{}
	}
}

// into names a target for people: by its dialect, or by its operation where that alone
// tells it apart.
func into(from, target *codec) string {
	if from.dialect == target.dialect || target.op == wire.Responses {
		return target.op.String()
	}
	return string(target.dialect)
}

// refusal is the error of a request that may not be sent with such losses.
func (r Report) refusal(to *codec, warn bool) *sluice.Error {
	worst := r.Worst()
	if worst == nil || warn && worst.Fate != Refused {
		return nil
	}
	e := &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.Untranslatable, Param: worst.Path,
		Msg: worst.Why + " (the model is served by " + to.title + ")", Hint: worst.Fix,
	}
	if worst.Fate != Refused {
		e.Hint += ", or have the tenant's translation set to warn, which names it in sluice-dropped"
	}
	return e
}

// Needs is what a translated request needs of a backend: its own needs but for the
// marks of what to cache, which only backends of its dialect take.
func (t *Translation) Needs() route.Needs {
	if t.Head == nil {
		return t.Op.Surface()
	}
	return t.Head.Needs | t.Op.Surface()
}

// Route is the translation as routing sees it.
func (t *Translation) Route() route.Translation {
	return route.Translation{Dialect: string(t.Op.Dialect()), Needs: t.Needs(), Err: t.Err}
}

// Into is what the request was put into, for people: a dialect, or, where that does not
// tell it apart, an operation.
func (t *Translation) Into() string { return t.into }
