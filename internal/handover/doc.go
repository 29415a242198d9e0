// Package handover gives lines of batches to a provider's own batch API, and takes the
// answers.
//
// # Model
//
// Each line stays a request of its own: admitted, held, on file, priced and settled by
// exchange, and fenced by jobs. What is in another place is its call. [Agent.Join] puts its
// body into a group of lines of one job that go to one account with one credential; a group
// that is full, or that nobody has joined for a second, becomes one batch at the provider,
// which is asked how it stands until it has ended, and each line has its own answer out of
// it:
//
//	collecting ─▶ sending ─▶ running ─▶ over
//	                 └─▶ looked for ─┘
//
// A line that has no answer at the end is [ErrUndone], and run by itself when its turn comes
// again: the batch was refused, failed, expired, was cancelled or is lost; or its results do
// not have the line, or nothing that is an answer. Of two results of a line the first
// counts. A batch is cancelled when its time is up (Call.Until) or when none of its lines is
// wanted any more (Seat.Cancel), and what is done of it by then taken: the provider has
// EndsIn for that.
//
// A provider that does not know a batch any more is asked again for a minute before the
// batch is lost.
//
// An account that has not taken a batch is left alone for ten minutes.
//
// # Restart
//
// Which lines are in which batch is in the store before the provider is told, and the
// provider's name of it as soon as that is known. Lines are named at the provider by a token
// of their batch and their number, so that a line that another process claims after this one
// has died finds its batch ([Agent.Find]) and waits for its answer there in place of being
// sent again.
//
// A batch that has no name was being made when its process died, or the answer was lost. It
// is looked for among the newest of the provider's: by its id in the metadata, or, where
// there is none (Anthropic), by the token in the results of those that may be it, once they
// have ended. One that is not there when the call that makes it must be over was not made:
// it is forgotten, and its lines are handed over anew. A process that hears of its name only
// then cancels it.
//
// # Order
//
// Once all lines of a batch have their end in the store, or are taken back, nothing of it is
// to stay at the provider: what runs is cancelled, and input, results and errors are
// deleted. That goes by the store too, each minute, so that it does not matter who made it.
// A batch that was not made stays in the store for that, of no lines: its input is found by
// its name in the provider's list of files.
//
// # Bounds
//
// A group has at most MaxLines lines and MaxBytes of bodies, which are let go once they are
// sent; at most MaxWaiting lines wait in one process. Results
// are read line by line, of at most 32 MiB, and of a file at most MaxResults: lines whose
// result is beyond that are taken back. Answers wait in memory for those who asked.
//
// # Ownership and concurrency
//
// An Agent is safe for concurrent use. Each group has a goroutine, and what puts in order
// has one; [Agent.Close] ends and joins them, and batches go on at their providers. One
// mutex guards groups and who waits; nothing blocks under it.
//
// # What it does not do
//
// It decides neither who may run nor what anything costs.
package handover
