// Package acceptance replays recorded workloads through a whole gateway and
// holds its ledger against the book of the provider behind it.
//
// Everything is real but the model: a gateway made by package app with a
// configuration file, a journal and a store on disk, a scripted provider on its
// own port, and clients of package replay over TCP. The provider counts in its
// own tokens, by ratios that the gateway cannot know, and bills what it wrote.
//
// Where clients leave, time and network are not real either: on a busy machine
// what is on its way when a client leaves would be no small part of an answer. No
// bound of these runs depends on what else
// the machine does.
//
// The traces are read from ../shared/traces beside the repository where they
// are; elsewhere the same runs take synthetic rows of the same shape.
// SLUICE_ACCEPTANCE_SCALE=N makes every run N times as long; -short leaves them out.
package acceptance
