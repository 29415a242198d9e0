package sched

// roster is what waits in a queue, in three orders. Where an item leaves, its neighbours
// in each are told, none of which was looked at lately: so the links do not lie in the
// items, each of which would be read from memory for it, but close together here.
type roster struct {
	posts []post // of what waits, and spare ones; that of index 0 is nobody's
	spare []int32
}

// post is an item's place in the roster.
type post struct {
	item  *Item
	links [numOrders]link
}

// link is the neighbours in one order, by their posts; 0 if there is none.
type link struct{ before, after int32 }

// order is one in which items are listed.
type order uint8

const (
	byArrival  order = iota // of a class
	byPush                  // of a tenant in a class
	byDeadline              // of those that may wait equally long
	numOrders
)

// list is items in an order, by the posts of the first and of the last; 0 if it is empty.
type list struct{ first, last int32 }

func newRoster() roster { return roster{posts: make([]post, 1)} }

// enter gives an item a post.
func (r *roster) enter(it *Item) {
	if n := len(r.spare); n > 0 {
		it.post, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		it.post = int32(len(r.posts))
		r.posts = append(r.posts, post{})
	}
	r.posts[it.post].item = it
}

// leave takes an item's post away. REQUIRES: it is in no list.
func (r *roster) leave(it *Item) {
	r.posts[it.post] = post{}
	r.spare = append(r.spare, it.post)
	it.post = 0
}

// first is the first item of a list, last the last one; nil if it is empty.
func (r *roster) first(l *list) *Item { return r.posts[l.first].item }
func (r *roster) last(l *list) *Item  { return r.posts[l.last].item }

// before is the item before one in an order, after the one after it; nil if there is none.
func (r *roster) before(o order, it *Item) *Item {
	return r.posts[r.posts[it.post].links[o].before].item
}

func (r *roster) after(o order, it *Item) *Item {
	return r.posts[r.posts[it.post].links[o].after].item
}

// insert lists an item behind another, in front of all if that is nil.
func (r *roster) insert(l *list, o order, it, behind *Item) {
	if behind == nil {
		r.put(l, o, it, link{after: l.first})
		return
	}
	r.put(l, o, it, link{behind.post, r.posts[behind.post].links[o].after})
}

// push lists an item behind all, without a look at any.
func (r *roster) push(l *list, o order, it *Item) { r.put(l, o, it, link{before: l.last}) }

// put lists an item between two.
func (r *roster) put(l *list, o order, it *Item, at link) {
	r.join(l, o, at.before, it.post)
	r.join(l, o, it.post, at.after)
}

// remove takes an item out of a list.
func (r *roster) remove(l *list, o order, it *Item) {
	at := r.posts[it.post].links[o]
	r.join(l, o, at.before, at.after)
}

// join makes two posts neighbours; 0 is beyond an end of the list.
func (r *roster) join(l *list, o order, before, after int32) {
	if before == 0 {
		l.first = after
	} else {
		r.posts[before].links[o].after = after
	}
	if after == 0 {
		l.last = before
	} else {
		r.posts[after].links[o].before = before
	}
}
