// Package rehearsal holds the scenarios that ship, the overload playbook and the
// examples to what they promise.
//
// # What is held
//
//   - Every scenario that ships meets its expectations under the shipped policy,
//     throughout and for every seed. Under the naive one it meets them until the
//     event, and misses at least one after it. Where the first event is the fault
//     that takes requests down with it, that is the same for both.
//   - The figures that the product promises to reproduce come out of runs within
//     three standard deviations of their sampling: for a Poisson stream of n requests
//     of L tokens each, n·L ± 3·L·√n.
//   - Where nothing happens, a scenario compares policies: the naive one misses some
//     expectation of it. Affinity finds its multiple of what taking turns finds in
//     caches, and the table that the documentation has of it is what runs give.
//   - Every act of a scenario is a play of the playbook, and every play is an act.
//     Its effect is measured by pairs: the same seed with the act and without. The
//     least difference is in the play's favour, and the mean difference is more than
//     twice its standard error.
//   - The names of metrics in the playbook exist.
//   - The examples load, run, and are served by a gateway.
//
// Runs are shared between tests, since they are pure: a scenario, policy, seed and
// acts have one result.
//
// SLUICE_REHEARSAL_SEEDS sets how many seeds are run, five if it is not set. The race
// detector leaves the long runs out: they are one goroutine each.
package rehearsal
