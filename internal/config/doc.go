// Package config reads the configuration file, explains what is wrong with it,
// and compiles it into a snapshot that can be put in force.
//
// # Model
//
// One YAML file becomes a [Config] in [Load] or [Parse], and a [Snapshot] in
// [Compile]:
//
//	bytes ─▶ syntax tree ─▶ Config (typed, defaults filled in) ─▶ rules over names ─▶ Snapshot
//
// A decoder of our own walks the syntax tree, since it must go on after a
// mistake: all [Problems] are told at once, each with file, line, column, path,
// cause and fix. Unknown and repeated keys are mistakes; the fix names the
// nearest known word.
//
// ${NAME} in any value is the environment variable; a secret may also be
// file:/path. References are set aside before YAML sees them, so that their
// braces may stand inside of {…}, and are exchanged for their values after it,
// so that no value can change the structure. Values of variables never show in
// messages: the reference does.
//
// # Invariants
//
//   - Everything fallible is over when Compile returns: a failed load or compile
//     changes nothing, since nothing was touched.
//   - Unset means unlimited, unless a plan says something; none lifts what it
//     says; a limit of 0 is a mistake.
//   - A price that is not known is refused or charged a declared ceiling. Free is
//     said explicitly.
//   - The version is a hash of the effective configuration without its secrets.
//   - What later versions will obey (shared) is checked and kept, and
//     [Config.Lint] says that it is not yet in force.
//   - How a pool is shared is whole when it is compiled: shares that the file leaves
//     out are split out of what it leaves, and no class is the zero value.
//   - The naive policy is compiled in, not asked for later: into pools that serve in
//     order of arrival, and into records that leave limits out (auth.Records.Naive).
//   - Every setting that a running process cannot change is told by
//     [Settings.Fixed].
//
// # Versions
//
// A text may be kept and read again ([ParseWith]): [Config.Kept] takes out what secrets
// stand in it, and [Marks] puts them back from a configuration that still has them.
// [Changes] are made to the decoded file before its rules are checked, so that a change
// is refused as the file would be. [Diff] compares what two files mean.
//
// # Scenarios
//
// A scenario of the tabletop is read by the same decoder ([ReadScenario]). It holds
// its gateway in the words of the configuration file, inline or by name, and is
// compiled under every policy: as it is, naive, and each variant. Patches are joined
// on flat syntax trees, in which aliases are written out, so that each policy is
// decoded and checked as a file of its own, and what a patch breaks is told at the
// patch. A rehearsal reads no secret and needs no key, no store and no address. Files
// that a scenario names are read while it is; everything in it is bounded.
//
// The JSON Schema of the file ([Schema]) and docs/config.md are made from the
// same struct tags; tests hold both to them.
//
// # Ownership and concurrency
//
// All values are plain data, immutable after they are returned. Nothing is
// started and nothing is kept. Secrets in files are read while parsing. Lint alone
// looks at the clock, for keys that have expired.
//
// # What it does not do
//
// It watches no file, opens no port and no store; whether a port is free is for
// whoever listens to say. It keeps no history: the app does.
package config
