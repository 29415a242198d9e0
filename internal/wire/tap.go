package wire

import "sluice"

// TapOptions says how a Tap treats the answer.
type TapOptions struct {
	StripUsage      bool          // the client did not ask for usage: splice it out (OpenAI streams)
	StripContinuous bool          // the client asked for usage at the end but the gateway asked for it in every event: splice it out of events that have choices
	Input           sluice.Tokens // the input estimate, for an answer that reports no input at all
	Ceiling         sluice.Tokens // largest credible figure, such as the context length; 0 takes DefaultCeiling
}

// DefaultCeiling is the largest token count of one attempt that is believed.
const DefaultCeiling sluice.Tokens = 1 << 27

// Step is what one event of an answer means.
type Step struct {
	Out      []byte        // bytes to forward, valid until the next call; nil when the event is dropped
	Content  bool          // it carries content, or ends the answer: forwarding it commits. Otherwise it is preamble or a comment
	Terminal bool          // the dialect's terminal marker: nothing after it is forwarded
	Err      *sluice.Error // the upstream failed inside the stream; Out is nil
}

// Tap watches one answer on its way to the client: it decides what is forwarded,
// reads usage and counts what is delivered. It is not safe for concurrent use.
type Tap struct{}

// NewTap returns a Tap for one attempt's answer.
func NewTap(op Operation, o TapOptions) *Tap { return &Tap{} }

// Event takes the next event of a streamed answer.
func (t *Tap) Event(e Event) Step { return Step{Out: e.Raw} }

// End says what the end of the stream means: cause is what Events.Next returned,
// io.EOF for a clean end. A Step without Err is success; its Out, if any, is the
// terminal marker that the upstream left out.
func (t *Tap) End(cause error) Step { return Step{} }

// Body takes a whole answer that was not streamed and returns what to forward. The
// error is a *sluice.Error when the answer is malformed or carries an error
// object in spite of its status.
func (t *Tap) Body(b []byte) ([]byte, error) { return b, nil }

// Usage is the provider's final figures in disjoint classes; false if it has told
// none.
func (t *Tap) Usage() (sluice.Usage, bool) { return sluice.Usage{}, false }

// Partial is the provider's cumulative figures at a cut (Source is UsageCounted);
// false if it has told none. Output may lag behind Delivered: take the larger.
func (t *Tap) Partial() (sluice.Usage, bool) { return sluice.Usage{}, false }

// Delivered is the class-based count of all output that was seen: text, reasoning,
// refusals and tool arguments.
func (t *Tap) Delivered() sluice.Tokens { return 0 }

// Reasoned is the part of Delivered that is reasoning.
func (t *Tap) Reasoned() sluice.Tokens { return 0 }

// Finished reports whether the answer is complete: its terminal marker, or a
// finish reason for every choice, has been seen.
func (t *Tap) Finished() bool { return false }

// ServedModel is the model that the provider says it ran, empty if it has not said.
func (t *Tap) ServedModel() string { return "" }

// FinishReason is the provider's word for why the answer ended, the last one if
// there are several choices; empty if it has given none.
func (t *Tap) FinishReason() string { return "" }
