// Package scenarios holds the rehearsals that the program ships: scenario files
// and the traces that they name, embedded.
//
// Each is a file that a team would write itself: it can be shown, saved, changed
// and run. A file states what it is about in one sentence, expectations that hold
// under the policy that ships, and that the naive policy meets until the event and
// not after it, and the acts of the overload playbook that it shows.
//
// The traces are rows made up in the shape of published recordings; none of the
// recordings is here. A run puts a real one in their place with --trace.
//
// The package opens files and nothing else; what they mean is for config to say.
package scenarios
