// Package batch is the face of files, batches and requests that are answered later, over
// package jobs.
//
// # Model
//
// A [Face] has routes of both dialects, which the proxy mounts. It speaks the dialects'
// words and decides nothing: what a file may be, which lines are wrong, what runs when and
// what came of it is [jobs.Desk]'s.
//
//	OpenAI     POST, GET, DELETE /v1/files, GET …/content      a jobs.File
//	           POST, GET /v1/batches, POST …/cancel            a jobs.OpenAIBatch
//	Anthropic  POST, GET, DELETE /v1/messages/batches,
//	           POST …/cancel, GET …/results                    a jobs.MessageBatch
//	both       Prefer: respond-async on an operation,
//	           GET, DELETE /v1/sluice/answers/{id}             a jobs.Async
//
// # Streams
//
// An upload goes from the connection to the store part by part. The requests of a message
// batch come in one JSON array; each is written as a line of a hidden file as soon as it
// has been read, so that no more than one of them is in memory. Contents and results go
// from the store to the connection likewise.
//
// # Keys
//
// What makes something, an upload, a batch or a request that is answered later, makes it
// once for an Idempotency-Key: the store keeps the key in the transaction that makes it
// (idempotency.Once). Since that is the last thing that a request does, its body has been
// read by then and is known by its digest; what was written of it for nothing is dropped.
//
// # Walls
//
// What is another tenant's, what is another project's, what is of another kind and what
// never was are one answer: 404 with the same words. An id that cannot be one is not looked
// up.
//
// # Ownership and concurrency
//
// A Face has no state, no goroutine and no lock. A file that is being written belongs to
// its request, which commits or aborts it.
//
// # What it does not do
//
// It identifies nobody, bounds no body and writes no error: the proxy does. It keeps files
// of no other purpose than batches: what providers do with files they do with their own.
package batch
