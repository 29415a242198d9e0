// Package sluice is the vocabulary of the gateway: the words of DESIGN that every other package speaks, as types.
//
// # Model
//
// A request has a [Principal] (who), a [Work] (its shape before it runs) and, when it has ended, a [Usage] (what it
// really took), an [Outcome] and a [Reason]. A [Limit] bounds one [Dimension] at one [Scope]. Money is integer [Nano]
// dollars, a [Price] is nano-dollars per million tokens. An [Error] has a [Kind], which decides the status, and a
// Reason, which is the same word in body, header, metric, log and ledger.
//
// # Invariants
//
// The package imports the standard library only, holds no state, starts nothing, and contains no logic beyond
// arithmetic and validation. Enums are closed; their text forms are part of the public surface and are appended to,
// never renamed.
//
// # What it does not do
//
// It knows no wire dialect, no file format and no database. Those translate to and from this vocabulary at their own edge.
package sluice
