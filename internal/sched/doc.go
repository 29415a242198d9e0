// Package sched is a pool's queue: who waits, in what order, and for how long.
//
// # Model
//
// A [Queue] holds items and knows what of them runs. The driver asks [Queue.Next]
// for the item to serve, tells it about its backends through [Room], and answers
// with [Queue.Dispatch], [Queue.Park] (a limit of the caller is full) or
// [Queue.Remove]; what runs is put right by [Queue.Correct] and leaves by
// [Queue.End].
//
//	pool ─ class ─ tenant ─ project ─ flow × size class ─ item
//	      share    weight   equal     order of arrival
//
// Each level but the last is shared by virtual time: a class, tenant or project is
// charged the work of an item, w_in × uncached input + w_out × output, divided by its
// share or weight: input and half of the expected output when it is dispatched, the
// rest as it comes, so that charge and delivery are never further apart than half an
// answer. The one with the least virtual time is served next. One that begins to
// compete starts where the one that was served last stood before it was charged for
// what it runs, or at the least of those that compete if that is less: so idling, or
// waiting for a limit of one's own, banks nothing, and what comes while others wait
// is next. What it is ahead by it keeps, so that a debt is not shed by a pause.
//
// That is start-time fair queueing, half way between a charge up front, which holds
// the corrected work closest, and one as the work is delivered (VTC, Sheng et al.,
// OSDI 2024), which holds the delivered closest.
//
// A [lane] is the requests of a class that the same backends can serve: whether
// one of them could start at all is decided once for all of them. Within a flow
// the size class, memory to a factor of four, keeps a long prompt from blocking a
// short one behind it.
//
// # What is not lent
//
//   - Headroom: the part of the pool that no other class may occupy.
//   - A contract's reserve, but to requests that are predicted to end within
//     Reclaim (lend: short), and to nobody while something waits that it admits.
//     What runs inside of a reserve is first in line and is charged to no virtual
//     time. Work per second that is used up makes the rest overflow, and for so
//     long the reserve is everybody's.
//   - A class's ceiling bounds what it occupies.
//   - What is gathered. A head that does not fit lets others pass up to its own
//     cost, in all and as the lead of any one flow over its own, so that small
//     requests gain no more than that over any time. Then one backend is kept for
//     it, the one with most room, or, where it lacks a part of the pool, all of it;
//     reserves, headroom and what is due no later than it apart, the last up to its
//     cost once more. One head gathers at a time. Meanwhile each head that does not fit
//     keeps back those of its class that are ahead of it by more than it lets pass: else
//     small requests would get away from it for as long as others gather.
//
// Apart from these, when Next answers nil no head of a flow and size class waits
// while one backend fits it in every dimension.
//
// # Fairness bound
//
// Take flows f and g of one class, tenants or projects, that compete all through
// an interval and whose heads fit where they are due. v is virtual time, w weight,
// C the largest cost of an item, B the largest cost of what runs at a time.
//
//   - When f is picked v_f ≤ v_g, and then it is charged at most C: v_f − v_g ≤ C/w_f
//     just after. A correction moves v by what had not been charged yet of work in
//     flight, or was misjudged, in all at most B/w. So |v_f − v_g| ≤ (C + B)/w_min at
//     any time.
//   - S, the corrected work, differs from w·v by what is not charged yet of work in
//     flight, or was misjudged, at the interval's ends together at most B.
//
// Hence over any interval, however long,
//
//	|ΔS_f/w_f − ΔS_g/w_g| ≤ 2·(C + B)/w_min
//
// A head that does not fit adds at most its own cost, once per size class: what is
// ahead of it by more waits with it. It stays the least in virtual time meanwhile, so
// its flow makes up for it.
//
// # How long a head waits
//
// Let a turn of a head be the time until running work of its size has ended: the
// least t such that what ends within t on one of its backends, with what is free
// there, is as large as its need in every dimension. A head that is the least in
// virtual time waits at most until its allowance is used, or, if it is not, until
// it fits anyhow, and then for one turn. Before it is the least, each of the n
// others that compete in its class is served at most (2·C + B)·w_i/w_min more than
// it. A class without a share counts 1 %, so that it ages too. So with R the rate of
// work of the class, at least its share of the pool's,
//
//	wait ≤ (2·C + B)·Σ w_i / (w_min·R) + turn
//
// A tenant below its share is first when its request comes, beside others that have
// just come too, one item each: it waits for a turn.
//
// # Guests
//
// Two queues may share places, one of which is there for guests (engine). The other's
// bounds hold for it with what guests cannot take: they start only where nothing waits
// that goes first ([Queue.Foremost]), leave what is kept ([Queue.Kept]), and are served
// by class alone first ([Queue.NextAbove]).
//
// # Bounds
//
// A queue is bounded by requests, bytes and work, in all and per tenant. A full one
// sheds ([Queue.Shed]) the newest item of the tenant that fills most of it by its
// weight, in the class that does by its share: a flood displaces itself.
//
// What the view alone needs is bounded too: the refusals of the [MaxRefused] flows
// that were refused last, and what as many flows were served before they went away.
//
// # Prediction
//
// [Queue.Wait] is O(1) per lane: the virtual time by which the arrival would be
// ahead of those that compete, times Σ weights, is the work to be done before; the
// pool's rate is n·C ÷ S by Little's law, for n that run with mean work C and mean
// time S. [Queue.Place] tells it of what waits, whose requests ahead can be counted: it
// follows from who is due first alone, and stands still while nothing changes that.
//
// # Invariants
//
//   - Enqueued = Dispatched + Cancelled + Rejected + Moved + waiting, always.
//   - What a class or contract uses is the sum of what runs.
//   - Items of a flow and size class leave by dispatch in their order.
//   - Push, Dispatch, Correct and End cost O(log n) in what waits, Next O(lanes +
//     log n) unless memory and prefill are both short on different backends. What they
//     put off, Shed and Due pay for in their stead, once.
//   - The same calls give the same answers: no clock, chance, map order or floats.
//
// # Memory
//
// What waits, and whose it is, is in no cache when its turn comes: a step from one object
// to the next is a miss, and a decision was mostly such steps. So a tenant's first
// project, seat and node, of which most have no second, are part of it; items, lines and
// tenants begin each cache line with what the same steps ask for; the lists of what waits
// lie apart from it ([roster]), since who leaves tells its neighbours; and what only few
// ask is put right when they do: who fills most of the queue ([Queue.Shed]), which list of
// deadlines is due first ([Queue.Due]), the order of projects in a seat that has one.
// Who pushes items may keep where those of a flow stood ([Seen]), so that nothing is looked
// up by name and all that an arrival works on can be asked for at once; and who gives a
// place back can look up who is next while something else is done ([Preview]).
//
// # Spare places
//
// [Queue.StartSpare] starts what does not wait: a second attempt at a request that runs
// already. It takes only what nobody else is to have. Where W is what waits and its
// class lets in, and B(i) are an item's backends, it starts x at once if no w in W has
// B(w) ∩ B(x) ≠ ∅ with a free slot, nothing is gathered on B(x), and x fits into what is
// free less other classes' headroom and all that contracts reserve and do not use, lent
// or not. So it delays nobody who waits by then; who comes later may find the place
// taken, as by any other dispatch. It is charged as one, so that the bound on the
// difference of service between tenants covers it.
//
// # Copies
//
// What the driver lets run on places that nobody else wants ([Queue.Spare]) is in no
// line, class or virtual time; the queue knows only what it holds, for the ceiling of
// the class that it runs as. [Queue.Wanted] tells which backends something waits for,
// so that the driver can give such a place back.
//
// # What it does not do
//
// It knows no backend, limit or price, starts nothing and never asks for the time.
// It does not preempt: a reserve or headroom that was lent comes back by what ends.
// Fragmentation is the driver's: a reserve of memory is the pool's, and a request
// that needs more than any one backend has free of it gathers one.
package sched
