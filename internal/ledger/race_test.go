//go:build race

package ledger

// raceEnabled: the race detector allocates on its own account.
const raceEnabled = true
