// Package sched is a pool's queue: who waits, in what order, and for how long.
//
// # Model
//
// A [Queue] holds items in flows. A flow is what shares its own limits: one key's
// requests for one model. Within a flow items keep their order; between flows the
// one whose head has waited longest is served first. The queue is bounded by
// requests, bytes and work, and counts by class.
//
// The driver takes heads one by one. [Queue.Head] is the head of the oldest flow
// that is neither parked nor skipped. It is dispatched ([Queue.Remove]), or its
// flow is parked or skipped:
//
//   - [Queue.Park]: a gauge of the caller is full. The flow is passed over, at no
//     cost to later scans, until [Queue.Unpark] tells that the gauge has room.
//   - [Queue.Skip]: no backend fits the head now. Others may pass it, until
//     [Queue.Rewind] ends the scan, but only up to its own work: then
//     [Item.Gathers] says that what becomes free is to be kept for it.
//
// Neither loses the head's place.
//
// # Order
//
// Items are ordered by Since, then by the order of Push. Since is the arrival for
// a first attempt, also when it moves to another pool's queue; a further attempt
// queues from the moment that the last one ended, behind those that wait already.
//
// # Prediction
//
// An arrival with a requests ahead of it waits about S × (a + 1) ÷ n, where S is
// the mean time that recent attempts held their place ([Queue.Ended], an integer
// moving average with weight 1/8) and n how many run now: when every place is
// taken one becomes free every S ÷ n. Before the first attempt has ended nothing
// is known, and the prediction is zero.
//
// # Invariants
//
//   - Enqueued = Dispatched + Cancelled + Rejected + Moved + waiting, always.
//   - Items of a flow leave by dispatch in their order.
//   - With no flow parked or skipped, Head is the item with the least
//     (Since, push order).
//   - Push, Remove, Park and Unpark of one flow cost O(log n); Head O(1).
//
// # What it does not do
//
// It shares nothing out by weight or class: that is the fair queue, which takes
// this one's place behind the same methods. It knows no backend and no limit, and
// never asks for the time.
package sched
