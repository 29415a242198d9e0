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
// # Slices and turns
//
// What takes the longer the larger a job is, is done in slices, each with a transaction of
// its own that is as short for a large job as for a small one:
//
//	check an input       1,000 lines or 4 MB, and the line that is being read
//	end lines            2,000
//	write results        2,000 or 4 MB
//	delete what is over  2,000 lines, or 16 MB
//
// How far it is, is kept with each slice ([Checked], [Written]); whoever leases the job goes on
// from there. At most two slices are done at a time in one process, and the tenants take
// turns, and within a tenant its jobs. So:
//
//	While a slice waits, each other tenant begins at most one, and one more for each slice
//	of its own tenant that came before it.
//
// Hence the batch of one line of a tenant that has no other is checked behind what is under
// way and at most one slice of each other tenant, however many and large their batches are.
// Deleting takes its turn like a tenant. An Async is one line, and takes none.
//
// A check ends at the first line that is beyond a bound: of the job's lines, or of all that
// the tenant's open jobs have.
//
// The jobs that a worker looks at are, if there are more than 1,000, of each tenant its
// oldest, then of each its second, and so on.
//
// # When the store does not answer
//
// All that is begun is tried again, a second later, from the last slice that was kept. Results
// wait in memory, which bounds how many lines begin. A worker that could not renew its lease
// begins nothing; when it can again, it gives back what it had only claimed, and for a while
// takes nothing over from workers who may have been as helpless. What is told of each thing
// that the store does not do is one line in the log when it begins and one when it is over
// (Hooks.StoreFailed counts them all).
//
// # What stays and what goes
//
// The lines of a job go when it has ended, since its results are in files; those of an Async
// are its answer and go at ResultsExpire. The job itself goes 30 days after its results. A
// file goes at its time, unless an open job reads it, and one that was not committed after a
// day. What a tenant leaves that is deleted goes at once.
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
// of answers what is not posted yet, which is no more than the lines in flight, of a check
// 48 bytes a line and of all checks that wait for their turn 64 MB: one that would have more
// reads the ids of its lines again with its next slice.
//
// # What it does not do
//
// It knows no HTTP: faces do. It decides neither what a request costs nor when it runs:
// each goes through an exchange.Runner, like a client's.
package jobs
