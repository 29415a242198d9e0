// Package cli is the command line: sluice NOUN VERB.
//
// # Rules
//
//   - Data goes to standard output in the form that -o names (table, json, csv,
//     yaml); talk goes to standard error. What is printed as JSON is the admin
//     API's own answer, so that both are documented once.
//   - An error is one sentence on standard error, then a hint that says what to
//     do, then exits with a code of the table below. No stack, no usage dump.
//   - What changes something takes --dry-run.
//   - serve says what happens to it in the gateway's log alone, so that whoever
//     reads the log finds nothing else on standard error.
//   - A gateway is spoken to over the admin API alone. Its address is --admin or
//     SLUICE_ADMIN; its token is --token, SLUICE_ADMIN_TOKEN, or the file that
//     serve writes with mode 0600 into its data directory. On the machine of
//     `sluice serve`, in its directory, no flag is needed.
//   - Colour only on a terminal and without NO_COLOR; control characters in
//     what others have named never reach a terminal.
//
// # Exit codes
//
//	0  done
//	1  failed, or an expectation was not met
//	2  wrong usage, or an invalid configuration
//	3  not found
//	4  denied
//	5  conflict: it exists, or a file owns it
//	6  degraded: done, but the gateway's store or journal is not well
//	7  unavailable: the gateway does not answer or is not ready
//
// # Lifecycle
//
// [Run] is the whole program but for os.Exit. Commands end when their context
// does. serve drains on the first SIGTERM or interrupt, quits on the second, and
// reloads on SIGHUP.
//
// # What it does not do
//
// It holds no logic of the gateway: it parses, asks, prints. It opens no store
// and no journal.
package cli
