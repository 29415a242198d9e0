package fakellm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxOthers is how many tokens the real ones tell of at most in the place of one.
const maxOthers = 20

// likelihoods reads whether log probabilities are asked for, and of how many tokens at
// each place.
func (a *ask) likelihoods(in *body) *refusal {
	var asked bool
	_ = json.Unmarshal(in.Logprobs, &asked) // completions have a number there, and are told none
	a.likely = asked || slices.Contains(in.Include, "message.output_text.logprobs")
	a.others = in.TopLogprobs
	switch {
	case a.others < 0 || a.others > maxOthers:
		return invalid("top_logprobs must be from 0 to %d", maxOthers)
	case a.others > 0 && !a.likely:
		return invalid("top_logprobs needs logprobs")
	}
	return nil
}

// chance is how likely a token was, and others in its place.
type chance struct {
	token  string
	log    float64
	others []chance
}

// chances are those of a text, if they are asked for: its words are its tokens. The same
// text always has the same.
func (a *ask) chances(s string) (out []chance) {
	if !a.likely {
		return nil
	}
	for len(s) > 0 {
		n := strings.IndexByte(s[1:], ' ') + 1
		if n == 0 {
			n = len(s)
		}
		c := chance{token: s[:n], log: -float64(n%8+1) / 16}
		for i := range a.others {
			o := chance{token: c.token, log: c.log}
			if i > 0 {
				o = chance{token: fmt.Sprintf(" other%d", i), log: c.log - float64(i)}
			}
			c.others = append(c.others, o)
		}
		out, s = append(out, c), s[n:]
	}
	return out
}

// listed are chances in the words of OpenAI's dialects.
func listed(list []chance, withBytes bool) []obj {
	out := []obj{}
	for _, c := range list {
		o := obj{"token": c.token, "logprob": c.log, "top_logprobs": listed(c.others, withBytes)}
		if withBytes {
			bytes := []int{}
			for _, b := range []byte(c.token) {
				bytes = append(bytes, int(b))
			}
			o["bytes"] = bytes
		}
		for _, t := range o["top_logprobs"].([]obj) {
			delete(t, "top_logprobs")
		}
		out = append(out, o)
	}
	return out
}

// inChat are the log probabilities of a choice, null if they are not asked for.
func (a *ask) inChat(s string) any {
	if list := a.chances(s); len(list) > 0 {
		return obj{"content": listed(list, true), "refusal": nil}
	}
	return nil
}

// ofCandidate adds the log probabilities of a text to a candidate of Gemini's.
func (a *ask) ofCandidate(c obj, s string) {
	list := a.chances(s)
	if len(list) == 0 {
		return
	}
	one := func(c chance) obj { return obj{"token": c.token, "tokenId": len(c.token), "logProbability": c.log} }
	var chosen, top []obj
	sum := 0.0
	for _, x := range list {
		sum += x.log
		chosen = append(chosen, one(x))
		others := []obj{}
		for _, o := range x.others {
			others = append(others, one(o))
		}
		top = append(top, obj{"candidates": others})
	}
	result := obj{"chosenCandidates": chosen}
	if a.others > 0 {
		result["topCandidates"] = top
	}
	c["logprobsResult"], c["avgLogprobs"] = result, sum/float64(len(list))
}
