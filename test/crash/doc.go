// Package crash kills the gateway, again and again, and holds what it remembers
// against the book of a provider that survives.
//
// TestCrashLoop keeps 50 streams running and ends the process by SIGKILL, at a
// random moment or at a step of its journal: before a record is written, in the
// middle of it, after it, before or after an fsync. TestLongStreams does so where
// checkpoints and the journal's segments have come and gone. TestPowerLoss takes
// away what was not synced as well, also from a disk whose fsyncs are slow.
// TestBatchKilled does so to a gateway that works at a batch.
// TestRestart times a start with 100,000 open holds.
//
// At random moments it is the binary that dies. At steps of the journal it is
// this test binary in the role of `sluice serve`, with a disk below the journal
// that ends the process when it is told to, and segments of 16 KB: the gateway has
// no switch for that.
//
// SLUICE_CRASH_ROUNDS is how often each loop kills (10), SLUICE_CRASH_HOLDS how many
// holds are open (100,000), SLUICE_CRASH_LINES how many lines its batch has (64 for each kill),
// SLUICE_CRASH_SEED makes a run's choices those of
// another.
package crash
