package cache

import (
	"container/list"
	"slices"
	"strings"
	"time"
)

// shelf is what is kept in the order in which it was used last, within its bounds: of
// each owner by itself, and of all. It is not safe for concurrent use.
type shelf struct {
	bounds Bounds
	all    list.List // of *book, the one used last in front
	books  map[Key]*book
	owners map[string]*shelved
	bytes  int64
}

// book is one entry.
type book struct {
	key      Key
	scope    string
	size     int64 // with overhead
	expires  time.Time
	value    []byte // nil where it is a file
	all, own *list.Element
}

// shelved is what is kept of an owner.
type shelved struct {
	name  string
	own   list.List // of *book
	bytes int64
}

func newShelf(b Bounds) *shelf {
	return &shelf{bounds: b.WithDefaults(), books: make(map[Key]*book), owners: make(map[string]*shelved)}
}

// find is an entry that has not expired, which is used by this. One that has is taken out
// and returned as gone.
func (s *shelf) find(now time.Time, scope string, k Key) (found, gone *book) {
	b := s.books[k]
	if b == nil || b.scope != scope {
		return nil, nil
	}
	if !now.Before(b.expires) {
		s.remove(b)
		return nil, b
	}
	s.all.MoveToFront(b.all)
	s.owners[scope].own.MoveToFront(b.own)
	return b, nil
}

// fits reports whether an entry of so many bytes can be kept at all.
func (s *shelf) fits(size int64) bool { return size <= s.bounds.PerOwner }

// add keeps an entry and returns what has to go for it, what it replaces included.
// REQUIRES: fits.
func (s *shelf) add(b *book, name string) (gone []*book) {
	if old := s.books[b.key]; old != nil {
		s.remove(old)
		gone = append(gone, old)
	}
	o := s.owners[b.scope]
	if o == nil {
		o = &shelved{name: name}
		s.owners[b.scope] = o
	}
	b.all, b.own = s.all.PushFront(b), o.own.PushFront(b)
	s.books[b.key] = b
	s.bytes += b.size
	o.bytes += b.size
	for o.bytes > s.bounds.PerOwner {
		gone = append(gone, s.remove(o.own.Back().Value.(*book)))
	}
	for s.bytes > s.bounds.Total {
		gone = append(gone, s.remove(s.all.Back().Value.(*book)))
	}
	return gone
}

func (s *shelf) remove(b *book) *book {
	o := s.owners[b.scope]
	delete(s.books, b.key)
	s.all.Remove(b.all)
	o.own.Remove(b.own)
	s.bytes -= b.size
	if o.bytes -= b.size; o.own.Len() == 0 {
		delete(s.owners, b.scope)
	}
	return b
}

// purge takes out all of an owner, or of everybody.
func (s *shelf) purge(scope string) (gone []*book) {
	for e := s.all.Front(); e != nil; {
		b := e.Value.(*book)
		e = e.Next()
		if scope == "" || b.scope == scope {
			gone = append(gone, s.remove(b))
		}
	}
	return gone
}

// levels is what is kept, in the order of the owners' names.
func (s *shelf) levels() []Level {
	out := make([]Level, 0, len(s.owners))
	for _, o := range s.owners {
		out = append(out, Level{Owner: o.name, Entries: int64(o.own.Len()), Bytes: o.bytes})
	}
	slices.SortFunc(out, func(a, b Level) int { return strings.Compare(a.Owner, b.Owner) })
	return out
}
