// Package jobs is the durable machinery of batch: files, jobs of many lines, and the
// workers that run a line as a request like any other.
//
// # Model
//
// A [File] is bytes of a tenant's, in the store, in chunks of [ChunkBytes]. A [Job] is
// lines of a file that are to be answered until a deadline. OpenAI's batches, Anthropic's
// message batches and single requests that are answered later are all jobs ([Kind]):
//
//	validating ─▶ in_progress ─▶ finalizing ─▶ completed | expired
//	    │              │
//	    │              └───────▶ cancelling ─▶ cancelled
//	    ├─▶ failed, expired           ▲
//	    └─────────────────────────────┘
//
// Every line comes to one end: succeeded, failed, cancelled or expired. What a job has
// cost is the cost of the requests whose results its lines have.
//
// # What a face may rely on
//
//   - All that is asked with a tenant is asked of that tenant: what is another's is
//     KindNotFound, like what is not there.
//   - [Desk.Create] takes a file of any size in little memory; until its Commit nobody sees
//     it, and what is never committed is swept away.
//   - [Desk.Submit] of a MessageBatch or of an Async has checked the input when it returns:
//     its error names the line. An OpenAIBatch is checked afterwards, and fails with
//     [Job.Problems].
//   - A job that has ended does not change, its files are ready, and they are gone at
//     [Job.ResultsExpire], or when the client deletes them.
//   - [Job.Counts] grow while it runs; all of them sum to Total.
//   - Errors are *sluice.Error and may be shown.
//
// # Lines and claims
//
// A worker is one process. It claims lines in groups. Each claim of a line has a number,
// which only rises, and the request id is made of job, line and claim ([RequestOf]). A
// result is taken only from the claim that is the line's last: so there is one result for
// each line, whoever else was at it. A worker says every third of Bounds.Lease that it
// lives; the lines of one that has not said so for Bounds.Lease are claimed by others.
//
// A line that is refused before its request is run is recorded as a request that is
// refused (Options.Refuse). So the request that a result names is in the ledger, and a
// result of a line that never ran names none. What is told of an answer beside its body
// ([Told]) is kept with it.
//
// The request of a claim that is not the line's any more is voided: its entries in the
// ledger, whether they are there already or come later, say voided_dup, show their cost,
// and are in no sum of the tenant's. So a line that was in flight when its process died is
// run again, and its tenant pays for one.
//
// # Waiting and failing
//
// A refusal for rate, for concurrency or for capacity gives the line back: it waits for
// what the refusal says, at least a second, and then takes its turn. The request that was
// refused is voided, unless it has taken something: a line is one request in all sums. A budget that is
// spent makes it wait where its window ends before the deadline, and is what the job waits
// for ([Hold]): one line is tried each minute, its urgency stays as it is, and its finish is
// predicted from the end of that window at the rate that it had. A line that runs all the
// same ends that. Anything else that a
// request can end with is the line's result. At the deadline, what has none expires.
//
// # Pace
//
// A worker runs so many lines of a job, of a tenant and in all at a time (Bounds), and
// the line that begins next is of the tenant that has the fewest in flight for its weight.
// They are of class batch, so that a pool gives them what other classes leave idle and
// their share of it. A refusal pauses the job, for what it says and 15 s at most, and lets
// half as many of its lines run at a time; as many answers as run at a time let one more.
// So it is with a relaxed job a line of which waited for capacity: somebody else wants it.
//
// The rate of a job is what of it has ended over the last 5 minutes, by whichever worker;
// its finish is predicted at that rate. Each hundredth of the window, but no more often
// than every 10 s, its urgency is decided anew:
//
//	up    the prediction leaves less to spare than a tenth of the time that is left, or
//	      than a fiftieth of the window; or no line has ended and a quarter of it has gone
//	down  it is sooner than half of the time that is left
//
// A relaxed job has Bounds.Lines lines in flight, a pressed one twice and an urgent one four times
// as many; those of an urgent job are of class standard, if the plan lets the key ask for
// that.
//
// Lines that a provider's own batch API has (package handover) have no place of these: they
// are in flight, but take no worker's room, and neither rate nor urgency goes by them. What
// a prediction says of them is when they are expected back. When their job is cancelled they
// are at once, without the grace that running lines have.
//
// # Memory
//
// A worker keeps of a file one chunk, of lines in flight their bodies (64 MB together),
// of answers what is not posted yet, which is no more than the lines in flight, and of a
// job that is checked 24 bytes a line.
//
// # What it does not do
//
// It knows no HTTP: faces do. It decides neither what a request costs nor when it runs:
// each goes through an exchange.Runner, like a client's.
package jobs
