// Package ledger is what happened and what it cost: entries, the journal that
// does not lose them, and the questions that are asked of them.
//
// # Model
//
// An [Entry] is one attempt at one backend, or a request that reached none. It
// is idempotent by (Request, Attempt): who appends it twice has it once. How
// each exit of a request fills its entry is docs/settlement.md.
//
// A [Journal] is append-only segment files in a directory. A request writes
//
//	Reserve     what it may cost, before it waits
//	Dispatch    which backend, before the dial
//	Checkpoint  what has been seen so far, every 2 s or 1,000 tokens
//	Settle      the Entry of an attempt; a Final one closes the request
//	Release     closes a request that needs no entry
//
// Each is in the kernel when the call returns, so the death of the process
// loses none. A group fsync follows within [JournalOptions.SyncEvery] off the
// path; [Journal.Sync] waits for it. A checkpoint may wait a second for a group
// that comes anyway. Power loss can lose what was written since the last group: at
// most SyncEvery and the time of one fsync, of checkpoints a second, and nothing of
// a caller who waited in Sync.
//
// # Segments
//
// A segment is a header (magic, format version, number, CRC) and records:
// length, CRC-32C over length and payload, payload (a kind byte and fields).
// Segments are sealed by size, after an fsync. Bytes that do not form a record
// at the end of the last segment, or of the one before while that is empty, are a
// torn tail and are cut off on open. Zeros that were set aside for records to come
// (docs/adr/0010) are one too, if the process dies. Between
// records of the last segment, pages of zeros are what a loss of power has kept
// from the disk, in whatever order the kernel wrote it: they are told of and
// skipped, and what follows them counts. Anything else is damage, and the journal
// does not open. A failed or partial write is cut away before the next.
//
// # Draining
//
// One goroutine reads settled entries back from the segments, in order and once
// they are on disk, and hands them to a [Sink] in batches. Entries are never kept in memory for it,
// so a sink that is down for a day costs disk and no heap. After a batch a mark
// is journalled; what follows the last mark is drained again after a restart,
// which the sink's idempotence makes harmless. A sink that has lost what it had
// taken, since it was restored from a backup or its own log was cut, is given what
// the segments still hold ([Journal.LastDrained], [Journal.Rewind]). A segment whose entries are all
// drained is deleted, oldest first. Records of requests that are still open in it
// are carried over to the newest segment, as soon as more than half of the journal
// is dead.
//
// # Recovery
//
// [OpenJournal] replays the segments. Requests without an end are
// [Journal.Recovered]: nobody knows what they really took, so [Open.Lost] makes
// an entry at the dearer of the last checkpoint and the estimate, and
// [Journal.SettleLost] settles all of them. An [Open] stays open in the journal
// until it is settled or released. Counters are seeded from the store and from
// [Journal.Undrained], so that a start need not wait for the drain.
//
// # Disk trouble
//
// A write that fails is reported as a ledger_busy error, so that requests with
// hard spend are refused. A Settle that cannot be written frees the ballast
// file first; should that not be enough it is kept in memory (bounded) and
// written when space returns, which is tried with every call and once a second.
// A journal that has grown to MaxBytes, because the sink is down, is treated
// alike: ends are recorded, beginnings are refused.
// A failed fsync is not retried blindly, because the kernel may have dropped the
// pages: the unsynced bytes are read back, verified and written again before.
//
// # Concurrency
//
// One mutex, held for the encoding and one write. An fsync runs in the kernel, and its
// end is waited for as for a socket (Linux; else it is called). Two goroutines, the syncer and
// the drainer, are joined by [Journal.Close]. A lock file keeps a second process
// out of the directory.
//
// # What it does not do
//
// It knows no SQL (store), no prices (price) and no rule of what an exit costs
// (exchange, by docs/settlement.md). It rolls nothing up.
package ledger
