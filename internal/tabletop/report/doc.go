// Package report renders what runs of a scenario showed, for people and for
// programs: a table for a terminal, a line of progress, JSON and one HTML page.
//
// # Model
//
// All of it is a pure function of a list of [tabletop.Result]: the policy that
// matters first (sluice), the one it is compared with next (naive), variants
// after them. The same results give the same bytes; nothing reads a clock, a
// terminal or the environment. Results are joined by what they have in common:
// phases by name and start, groups by kind and name, verdicts by text and phase.
// A result that lacks one, because it was interrupted, leaves a gap and not a zero.
//
// What is shown follows one order: whether the expectations are met, then
// goodput and the share of requests that met their target, then how long things
// took, then what was refused and why, then shares, cost and books. Utilisation
// comes last: a busy fleet is no success.
//
// # Time in charts
//
// A page is bounded: where there are many groups, charts join neighbouring
// buckets ([axis]). Percentiles cannot be averaged, so a joined bucket shows the
// worst of its parts; amounts per time are summed and divided by the longer
// time; costs per useful completion are weighted by completions; only shares
// are means. The page says how much time one point covers.
//
// # Safety
//
// Names come from scenario files. In a terminal, characters that are not
// printable are replaced; in the page everything goes through html/template or
// [esc]. The page loads nothing: style and script are inline, and its own
// Content-Security-Policy names their hashes, so that nothing else can run.
//
// The package does not run scenarios, judge expectations or open files.
package report
