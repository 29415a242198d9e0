// Package calibrate measures a live backend and fits the profile of a replica to
// it.
//
// # Model
//
// [Run] sends the probes of fleet.Plan to an OpenAI-compatible endpoint, streamed,
// and notes when each token came; meanwhile it reads the engine's own metrics where
// there are any. fleet.Measure makes samples of it and fleet.Fit a profile.
//
// Prompts are made of common words, begin each with words of their own, so that no
// prefix cache answers, and grow or shrink with what the backend says that they
// counted. Outputs are held to a length in the ways that engines know (min_tokens
// with ignore_eos) and that the scripted provider knows ([[tokens=N]]); a backend
// that refuses the first is asked without. Where an event carries several tokens,
// the running usage says how many, else the usage at the end is spread over the
// events.
//
// # Bounds
//
// The budget of tokens bounds the plan; what the backend counts is added up, and
// the run ends when that is spent. Half of a round refused ends it too: a backend
// with a rate limit is not one to calibrate.
//
// # Lifecycle
//
// One goroutine per request of a round and one that reads metrics; each round joins
// its own. When the context ends, what was learned so far is fitted and returned.
//
// # What it does not do
//
// It does not know whether somebody else uses the backend meanwhile, on which the
// profile would be slower than the engine is. It fits one replica: behind a load
// balancer it measures the balancer.
package calibrate
