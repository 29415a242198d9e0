// Package stateful remembers what backends keep for tenants between requests, by the ids
// that answers gave, and where: containers, files, stored answers, conversations, audio.
//
// # Model
//
// An answer that carries such an id makes it its tenant's, at the place that answered
// ([route.Pin]): an engine's replica, or a hosted provider's account. A request that refers
// to it may go there and nowhere else, and only if it is of that tenant:
//
//	Keep(tenant, place, ids)   an answer with them is being delivered
//	Find(tenant, ids)          the one place where all of them are, or which of them is unknown
//	Forget(tenant, ids)        they were deleted there
//
// Beside the place stands the model that was asked for when an id was made ([Keeper.KeepOf]):
// what is asked of the id alone, without a model, is asked under that.
//
// What is remembered of an id is a [Mark], a hash of its kind and itself: nobody can read
// ids out of the memory or the store, and none is longer than another.
//
// # Ownership
//
// An id belongs to the tenant to whom it came first, as long as it is remembered: one that
// comes to another tenant from the same place stays the first one's. Two places may give
// the same id to two tenants. To everybody else an id is as unknown as one that nobody has:
// Find takes the same way for both and says the same of them. [Found.Owned] tells that it
// is somebody's, for callers that may refer to what nobody here has: that it is refused to
// them, too.
//
// # Bounds
//
// Each tenant has the PerTenant ids that it used last, each for Keep from its last use, and
// all have Total together. Where that is full, a tenant that comes with another id loses its
// own oldest if nobody has more than it, else the tenant that has most loses its own. So
//
//   - what a tenant does costs another one nothing unless that has more than it;
//   - a flood of ids displaces the flood.
//
// What is forgotten is unknown from then on. A request has 256 references at most, an
// answer 64 ids (wire).
//
// # The store
//
// No database call is on the path of a request. One goroutine writes what is new to the
// store, in batches and at once, and reads what other replicas have written, every Refresh.
// What the store does not take is offered again, and beyond MaxPending the oldest is lost to
// it ([Stats.Lost]): known to this process alone. A restart reads all of it before the first
// request. Where other replicas write, a reference that is unknown waits for one reading
// that began after it, which all that wait at the time share, at most [missWait]; known ones
// wait for nothing. What is used often is written again only once a sixteenth of its time
// has gone.
//
// Two replicas that give one id of one place to two tenants at the same time agree on the
// one whose write came first.
//
// # Ownership and concurrency
//
// A [Keeper] has one goroutine, from Start to Close. Its methods are safe for concurrent
// use. One mutex guards the index, another what waits for the store; neither is held during
// a call of it, and they are never held together.
//
// # What it does not do
//
// It finds no ids (wire), decides nothing (route and exchange do), and deletes nothing at
// providers. It does not know what expires there sooner: such a request is sent and refused
// by the provider.
package stateful
