package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sluice/internal/admin"
	"sluice/internal/ladder"
)

// tier tells of a pool whose ladder had left the ground: which, how far, what had put it
// there, since when, and what it did to the request.
func tier(w io.Writer, x *admin.Explanation) {
	if x.Tier == 0 {
		return
	}
	l := x.Ladder
	if l == nil { // of an earlier version
		l = &admin.LadderFelt{Tier: x.Tier}
	}
	of := "the pool's ladder"
	if l.Pool != "" {
		of = "the ladder of pool " + l.Pool
	}
	fmt.Fprintf(w, "%-11s%s stood on tier %d, %s", "tier", of, l.Tier, ladder.Tier(l.Tier))
	if !l.Since.IsZero() {
		fmt.Fprintf(w, ", since %s", stamp(&l.Since))
	}
	if why := raisedText(l); why != "" {
		fmt.Fprintf(w, "; it had gone up because %s", why)
	}
	fmt.Fprintln(w)
	var did []string
	for _, word := range l.Did {
		if text := didText(word, x); text != "" {
			did = append(did, text)
		}
	}
	if len(did) > 0 {
		fmt.Fprintf(w, "%-11s%s\n", "", strings.Join(did, "; "))
	} else if l.Pool != "" {
		fmt.Fprintf(w, "%-11sthe request felt nothing of it\n", "")
	}
}

// raisedText is what put a ladder up, empty if that is not known.
func raisedText(l *admin.LadderFelt) string {
	switch l.Why {
	case ladder.CauseAge.String():
		return fmt.Sprintf("a request had waited %s (%s)", span(float64(l.AgeMS)/1000), l.Why)
	case ladder.CauseKV.String():
		return fmt.Sprintf("%s of the memory was in use while requests waited (%s)", partText(float64(l.KV)/1000), l.Why)
	case ladder.CauseRefused.String():
		return fmt.Sprintf("%s of the requests of ten seconds had been refused for want of room (%s)", partText(float64(l.Refused)/1000), l.Why)
	case ladder.CausePin.String():
		return fmt.Sprintf("%s pinned it: %s", l.By, l.Reason)
	}
	return l.Why
}

// didText is what a ladder did to a request, by the word for it.
func didText(word string, x *admin.Explanation) string {
	switch word {
	case "clamp":
		return "its answer was bounded"
	case "context":
		return "its input was too long for the tier: it was refused"
	case "defer":
		return "it waited, as class batch does on that tier and above"
	case "smaller":
		if len(x.Steps) > 0 && x.Steps[0].AskedModel != "" {
			return fmt.Sprintf("%s was asked for, and the caller consents to %s", x.Steps[0].AskedModel, x.Model)
		}
		return "a smaller model was to serve it, to which the caller consents"
	case "offer":
		return "it would have waited: it was refused, with the asynchronous path offered"
	case "shed":
		return fmt.Sprintf("class %s was shed: it was refused", x.Class)
	}
	return word
}

// remedy is what the client of a request that was refused was told to do.
func remedy(w io.Writer, s *admin.Attempt) {
	if s.Hint == "" && s.RetryAfterMS == 0 {
		return
	}
	text := s.Hint
	if s.RetryAfterMS > 0 {
		text = strings.TrimPrefix(text+fmt.Sprintf("; told to come back after %s", span((time.Duration(s.RetryAfterMS)*time.Millisecond).Seconds())), "; ")
	}
	fmt.Fprintf(w, "%-11s%s\n", "client", text)
}
