package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Fate is what becomes of a part of a request in another dialect.
type Fate uint8

// The fates, from the best to the worst.
const (
	Kept          Fate = iota
	Approximately      // kept in another way, which means nearly the same
	Dropped            // left out: a hint, nothing that changes cost, safety, determinism or structure
	Refused            // what it asks for cannot be had, and to leave it out would be to answer something else
)

var fateNames = [...]string{"kept", "approximately", "dropped", "refused"}

func (f Fate) String() string { return fateNames[f] }

// Loss is one thing that a translation does not carry as it is.
type Loss struct {
	Path string // in the client's request, such as messages[2].content[0].image_url.detail
	Fate Fate
	Why  string // completes a sentence that begins with the path
	Fix  string // what the client can do
}

// Report is every loss of one translation, the worst first, then in the order of
// the request.
type Report []Loss

// add notes a loss, once for each path. Of those beyond maxLosses only the first
// refusal is listed, in the place of another; left says that one is not listed.
func (r *Report) add(l Loss) (left bool) {
	refused := false
	for _, have := range *r {
		if have.Path == l.Path && have.Fate == l.Fate {
			return false
		}
		refused = refused || have.Fate == Refused
	}
	switch n := len(*r); {
	case n < maxLosses:
		*r = append(*r, l)
		return false
	case l.Fate == Refused && !refused:
		(*r)[n-1] = l
	}
	return true
}

// lose notes a loss. Those that are not listed are counted, once for each path as long as
// those of a path come one behind the other.
func (r *reporter) lose(l Loss) {
	if r.report.add(l) && l.Path != r.last {
		r.unlisted++
		r.last = l.Path
	}
}

// effortOff tells of an effort beside reasoning that is to be off.
func (r *reporter) effortOff(q *Request) {
	if q.Effort != "" && q.Effort != "none" {
		r.tell(FeatureEffortOff, r.from.path(top(), r.from.names[FeatureEffortOff]))
	}
}

// image tells of an image by its bytes that is of a kind that few take.
func (r *reporter) image(p *Part) {
	if p.Media.URL == "" && imageFormats[p.Media.Type] == "" {
		r.at(FeatureImageKind, p.at)
	}
}

// leastBudget is the least that Claude takes to reason with, in tokens.
const leastBudget = 1024

// least tells of a budget below that.
func (r *reporter) least(budget int64) {
	if budget < leastBudget {
		r.tell(FeatureLeast, r.from.path(top(), r.from.names[FeatureLeast]))
	}
}

// maxLosses bounds the losses that are told of one request.
const maxLosses = 64

func (r Report) sort() {
	slices.SortStableFunc(r, func(a, b Loss) int { return cmp.Compare(b.Fate, a.Fate) })
}

// Worst is the loss that decides, nil if there is none.
func (r Report) Worst() *Loss {
	if len(r) == 0 {
		return nil
	}
	return &r[0]
}

// maxHeader bounds the text of Paths, in bytes.
const maxHeader = 1 << 10

// Paths lists what was lost for the sluice-dropped header, bounded: what does not
// fit is counted.
func (r Report) Paths() string { return r.paths(0) }

// paths does so where there are more than it lists.
func (r Report) paths(more int) string {
	var b strings.Builder
	for i := range r {
		if b.Len()+len(r[i].Path) > maxHeader {
			more += len(r) - i
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r[i].Path)
	}
	if more > 0 {
		b.WriteString(", and " + strconv.Itoa(more) + " more")
	}
	return b.String()
}

// clean makes a name of the client's fit to stand in a path, a header and a log.
func clean(name string) string {
	const most = 64
	b := []byte(name[:min(len(name), most)])
	for i, c := range b {
		if c <= ' ' || c > '~' || strings.IndexByte(`"\,=`, c) >= 0 {
			b[i] = '?'
		}
	}
	return string(b)
}
