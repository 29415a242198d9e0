package dialect

import (
	"cmp"
	"slices"
	"strconv"
)

// maxAnswers bounds the answers to one request, as the largest of the dialects does.
const maxAnswers = 128

// Said is one answer of several: what it says and why it ended.
type Said struct {
	Parts []Part
	Stop  Stop
}

// each calls f with every answer, the first included.
func (a *Answer) each(f func(nth int, parts []Part, s Stop)) {
	f(0, a.Parts, a.Stop)
	for i := range a.Others {
		f(i+1, a.Others[i].Parts, a.Others[i].Stop)
	}
}

// add adds the next answer.
func (a *Answer) add(nth int, s Said) {
	if nth == 0 {
		a.Parts, a.Stop = s.Parts, s.Stop
		return
	}
	a.Others = append(a.Others, s)
}

// turns is what is known of each of several answers in a stream, by its index.
type turns[T any] []*T

// at is what is known of an answer; the index has been checked.
func (t *turns[T]) at(nth int) *T {
	for len(*t) <= nth {
		*t = append(*t, nil)
	}
	if (*t)[nth] == nil {
		(*t)[nth] = new(T)
	}
	return (*t)[nth]
}

// nthAnswer gives events the number of their answer.
func nthAnswer(events []Event, nth int) {
	for i := range events {
		events[i].Nth = nth
	}
}

// answerID is what the ids of an answer's calls are made of, where the backend gives none.
func answerID(id string, nth int) string {
	if nth == 0 {
		return id
	}
	return id + "_" + strconv.Itoa(nth)
}

// inOrder puts answers in the order of their indexes.
func inOrder[T any](list []T, index func(*T) int64) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(index(&a), index(&b)) })
}
