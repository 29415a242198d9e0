// Package engine composes the cores into one state machine: what the gateway and
// the tabletop drive.
//
// # Model
//
// A request arrives, waits, runs on one backend at a time, or on two (see Hedges), and
// ends:
//
//	          Arrive            Advance             AttemptEnded
//	(refused) ◀── arriving ──▶ waiting ──▶ running ──────────────▶ idle
//	                             ▲ │ ▲        │ no activity          │
//	                   refused / │ │ └────────┼──────────────────────┘ a further attempt
//	                   too late ◀┘ │          ▼
//	                             Settle,   expired ──▶ Settle: ErrLate, once
//	                             Cancel
//
// [Engine.Arrive] takes, all or nothing, what the caller is entitled to: requests,
// tokens and spend at every scope. [Engine.Advance] takes, all or nothing, what is
// scarce now: the caller's gauges and a place on one backend. Both are one
// reservation, which ends exactly once. A waiting request holds rates and spend,
// never a gauge. The driver calls Advance after every other event, and at
// [Engine.NextWake].
//
// # Limits
//
// The arithmetic is quota's. Input counts whether cached or not; output is all
// that is billed. A gateway's own retry is not another request of the caller, but
// its tokens and money are: what a failed attempt used is posted when it ends, and
// the hold is topped up before the next, or there is no next.
//
//   - A request that had a place counts as one request, however it ended. One that
//     never had, or that Cancel says used nothing, does not.
//   - Everything is charged in the windows of the reservation: a stream over the
//     end of a month belongs to the month in which it arrived.
//   - Soft spend holds the expected cost at the dearest eligible backend of the
//     first pools and may leave a debt. Hard spend holds the bound; where that
//     does not fit, the output bound is clamped to what does, and below MinOutput
//     the request is refused: budget_held if it would fit with nothing in flight,
//     else budget_spent.
//   - Where every backend of the model stops with the connection, and all that it
//     bills shows in the stream ([Call].Counted), hard spend holds the output in
//     steps: StepTokens at first, and [Engine.Step] raises the hold while what can
//     have been billed is less than a lead short of it. Where the budget has no room
//     for more, the stream is to end. If not even the first step fits, the bound is
//     clamped as above.
//   - A run that bounds output or all tokens holds the output's bound, clamped to what
//     the run has left as above, whatever becomes of spend: Grant.Whole. All other
//     limits on tokens hold what is expected.
//   - A caller's limits may be in shadow: Grant.Would tells what they would have done.
//     What a request asks for its own run is enforced all the same. Limits of models
//     and the fleet are always in force.
//   - What a request takes follows from the limits in force when it came. One that waits
//     for room in a gauge takes up what is in force now: [Engine.Swap] of models and the
//     fleet, [Engine.Revise] of callers.
//   - To a request that is owed ([Call].Owed) all limits are shadows, and tell nothing.
//   - A backend without price and ceiling is not eligible, so unknown is never free.
//     A fallback to a dearer pool tops the hold up first.
//
// # Expiry
//
// A running request without [Engine.Progress] for Options.HoldTTL, and for longer
// than its backend may be silent, expires: its place and gauges are free for
// others, and what it held of rates and budgets is charged. If its owner settles
// after all the actual takes the place of that charge, once, in the same windows,
// and Settle returns [ErrLate]. A bounded number of expired requests is remembered
// for this.
//
// A client that leaves while its backend goes on gives back its place and gauges by
// [Engine.Leave]. What it holds of rates and budgets stays until Settle, or expires
// like any.
//
// # Queue and places
//
// A request joins one queue: of the first pool whose predicted wait it can bear,
// else of the one with the shortest; of the fallback pools only where no first
// pool has a healthy eligible backend. Where even that one's predicted wait is
// longer than the request may wait it is refused at once. Sched's fair queue says
// who is served next; a flow whose own gauge is full is passed over and banks
// nothing. When its pool has no backend left for it, it moves, keeping arrival
// and deadline. A further attempt queues from the end of the last one, with a wait
// of its own.
//
// Where nothing serves a request now, but a backend that is well asked to be left alone
// for less than the request may wait (429), it joins that one's queue; the attempt that
// was refused so waits there too. An open breaker is not waited for: nobody knows when
// it closes.
//
// # Dialects
//
// A backend of another dialect than the client's may serve a request that can be put
// into it (Call.Others), and gets it where none of the client's own has room now. Where
// nobody has looked yet whether a request can, Arrive takes it only if such a backend
// takes it at once, and else asks for the answer (Verdict.Translate), with nothing
// decided, held or counted; after a failed attempt the answer comes with the Result.
//
// # Regions
//
// A request of a model with a [route.Locality] is served in one region at a time: in
// its home, the first of the locality's, unless that is lost, or cannot serve it in time
// and the locality lets it leave for that. Backends elsewhere are not eligible for it
// meanwhile (route.LeftLocality).
//
// Away from home it is a guest. Each region of a pool has a queue of guests beside the
// pool's, over the same places:
//
//   - Guests never hold more of the region's slots, memory or prefill than the headroom
//     H of what its usable backends have, nor anything that the pool keeps for a
//     contract or a class. One that is larger than the headroom is never a guest.
//   - A guest starts only where no request of the pool's own waits for the same
//     backends that is of its class or of a more important one. A head of a less
//     important class that does not fit on a backend has one kept for it first, from
//     the pool's own as well as from guests.
//   - A region that comes back is left to those who live there, some of whom its ramp
//     keeps away still: it gets no guests whose home serves them. Guests that wait in
//     one that comes back, or is lost, go home as soon as that serves, whosever turn
//     it is.
//   - Of guests the most important class goes first, whatever waits of others.
//   - What waits of guests fills no more than H of the queue's bounds.
//
// So the region's own never wait longer than in a region of their own that has 1 − H of
// its capacity: of each class the bound of [sched] holds with (1 − H)·R for R. What the
// headroom has no room for waits among the guests, or is refused with the wait that is
// predicted there, which is that of guests.
//
// A home that comes back gets its requests by route's ramp, those that wait as guests
// too; what runs elsewhere ends there. Where no other region serves the rest, they go
// home as well. Until then one request at a time goes there, as the probe of a backend.
//
// # Retries
//
// A further attempt needs room in route's retry budgets, a backend whose breaker is
// closed, and a pool that does not shed: that has not, within route.ShedFor, found
// its queue full, or let somebody down who would have waited as long as the operator
// lets it. How long a caller itself is willing to wait makes no difference to others.
// It joins the queue at the end of its flow, as of the moment at which the last
// attempt ended, and is charged like any other: what stands in line for its tenant goes first,
// and of other tenants what their share is due. The backend is chosen at its turn, and there
// the budget of the backend counts: where the only ones with room have used theirs
// up meanwhile, it ends. Whoever gets no further attempt settles with the failure of
// the last one; Next.Denied and Grant.Denied say which rule denied it.
//
// # Hedges
//
// A request whose attempt has shown no content by Grant.HedgeAfter may have a second one
// beside it, once ([Engine.Hedge]). In the engine's books that is a request of its own
// that knows which one it is beside: with a reservation, which is in the windows of the
// other and counts as no request, with gauges, a part of the pool and a place. So each
// attempt is held, corrected, expires and ends exactly once, whatever becomes of the
// other, and a budget holds the bounds of both.
//
// A hedge runs at once or not at all: its place is to spare (sched.Queue.StartSpare), on
// a backend of the request's pool or the model's other first pools that no attempt of
// it has been on, elsewhere than in its failure domains if there is a place. It is held
// to the retry budgets and counted against them, and its output bound is the request's:
// where a hard budget has no room for that there is no hedge.
//
// The first to have content wins, as its owner says by settling the other. What fails
// before is no end while the other runs (Race); when both have failed the request
// goes on as after any failed attempt, and knows of both backends.
//
// Which backends of a pool may serve a request at all is found once for each pool
// that it comes to, and kept with it until the table changes or a backend has failed
// it; what is asked at every step is only who of them has room.
//
// # Copies
//
// [Engine.Copy] gives a copy of a request, whose answer nobody sees (route.Shadow), a
// place in one pool at once or not at all: only while nothing waits for the pool, and
// beyond headroom, contracts' reserves and the ceiling of the lowest class. It is in no
// queue and in nobody's virtual time, earns no retries, and takes from an account of its
// own alone. Where a request waits for a backend, or a hedge wants one, on which a copy
// runs, the copy that began last has lost its place before Advance returns, and its owner
// is told by a Grant with the reason displaced. What is predicted, preferred and learned
// of requests is as if there were no copies; in a pool that serves requests, how copies
// end is no news of its backends either, and they are not the probe of a breaker.
//
// # Demand
//
// Each pool has a meter of what it is offered (package demand): what joins its queue,
// guests included, what it refuses for want of room, and what comes again after a failed
// attempt. It is offered no longer when it starts or gives up waiting. What a flow keeps
// back for a limit of its caller counts from when that lets it start; what moves to
// another pool counts there; what the prefix cache of its place turns out to hold is
// taken off. Hedges and copies take what is to spare and count nowhere. Nothing that is
// decided depends on it.
//
// # Ownership and time
//
// The engine is a value that its driver owns: no lock, goroutine or clock. A moment
// earlier than one it has seen counts as that one. The same calls give the same
// answers: nothing depends on map order, chance or floating point. Call holds
// neither a body nor a true output length.
//
// # Cost
//
// A decision (Arrive, Settle and Advance beside a hundred thousand that wait, seven
// scopes of six limits, BenchmarkDecision) is bounded by memory: all of it in the caches, it
// takes three fifths of the time. The rest is for what no cache holds:
//
//	arrival    the slots of the request and of its key in their indexes; the caller; the accounts of key and user; its line
//	dispatch   the request, its line, the heads of the same accounts and what Grant.Limits tells of their counters
//	end        the slot of the request; the rest was looked at when it was dispatched
//
// With ten thousand tenants the accounts of project, tenant and tenant × model are cold
// too. So what decides is kept small and together: see quota on accounts, sched on its
// heaps and lists, byname on look-ups. A request that waits is laid out for its turn: what
// is looked at from then to its end lies together, apart from what is needed when it comes
// or when something is the matter; what it takes of a place comes with the place, what
// follows from its work is not kept, and what few requests have is kept apart. It and its
// holds lie in one page.
//
// What is asked of memory early comes while something else is done, and waits for nothing
// (see prefetch). One cold thing tells of the next, so that each is asked for a step before
// it is read:
//
//	arrival    both slots; the caller, while the model is found; accounts, tenant and line, while the request is made
//	end        the request, which its [Handle] finds without a look-up; then its accounts and slot
//	dispatch   who is next, while another ends ([ahead]): tenant, line, request, accounts
//
// To look something up by name is a slot, an element and a string, each a miss. So at an
// arrival the request and its key are looked up, and no more: with the key lies where its
// last request was accounted and where it stood ([caller]). Nothing that is decided depends
// on what is asked for, on a caller or on a handle.
//
// Of some 25,000 instructions (counted by callgrind, few keys) two in five are the
// counters': each is brought to the present, looked at and taken from at arrival, told
// at dispatch and settled at the end. One in fifteen asks the four places what they have
// free. To know without a look that buckets are full was tried, and gained nothing; nor does
// it to read ahead what an arrival is about to write of the memory of an earlier request.
// Where the operating system gives large pages to all who have not asked for them
// (transparent_hugepage=always), finding pages costs less: that is the operator's to choose.
//
// The code of a decision is more than twice what the first-level cache of instructions
// holds, nearly all of it passed through once: what runs straight is dearer than a loop
// of as many instructions.
//
// # Mutations
//
// What the tests are for, found by breaking the code on purpose:
//
//	broken                                              fails
//	a tenant or line that is forgotten is recalled      sched TestSeen
//	a handle finds whose memory it is now               TestHandle
//	who is next is not looked up                        TestAhead, sched TestSeen
//	callers are never forgotten                         TestCallersAreForgotten
//	settle does not return the rest of the hold         TestCase_cD6, TestCase_cL6, quota buckets.dd
//	settle forgives what is beyond the hold             quota TestBucketConservation, buckets.dd
//	a long hold returns what a refill would have lost   quota TestBucketConservation, TestLongHoldBuysNoSecondBurst
//	a request can be settled twice                      TestOracle, life.dd, expiry.dd
//	a charge goes to the window in force                TestCase_cL7, TestCase_cL10, quota windows.dd
//	what was posted is charged again                    TestOracle, quota TestBookAgainstModel, retry.dd
//	an expiry charges nothing                           TestOracle, TestCase_cL7, expiry.dd
//	gauges stay with a request between attempts         TestOracle
//	a cancelled request keeps its place in the queue    TestOracle, queue.dd
//	a call that Cancel ends still counts                TestOracle, TestCase_cD6
//	hard spend holds the expectation                    TestHardSpendClamps, TestCase_cL2, hard.dd
//	hard spend does not clamp                           TestOracle, TestHardSpendClamps, hard.dd
//	an output in steps is held by the mean of what came    TestStepsKeepTheBudget
//	steps where the backend runs on                     TestStepsNeed, proxy TestHardSpendInSteps
//	a stream goes on without room                       TestStepsKeepTheBudget, proxy TestHardSpendInSteps
//	a shadow refuses, or takes from its buckets         quota shadow.dd, proxy TestLimitsInShadow
//	what waits keeps a limit that was raised            TestRevise
//	a run's bound can be loosened                       quota runs.dd, proxy TestRun
//	a run gets back what it spent                       quota runs.dd, TestRun
//	labels beyond the bound have no limits              quota TestHostileLabels, labels.dd
//	unpriced backends are eligible                      TestCase_cL3, route TestEligible
//	a dearer fallback does not top up                   TestOracle, fallback.dd
//	a failed backend is tried again                     admit TestNextFallsBack, fallback.dd
//	an attempt follows content                          TestOracle, fallback.dd
//	a full gauge blocks the queue                       TestWorkConserving, queue.dd
//	room in a gauge wakes nobody                        TestWorkConserving, queue.dd, admit TestCase_cD2
//	a hedge holds nothing of its own                    TestHedges, hedge.dd
//	a hedge that is refused keeps its hold              TestHedges, hedge_refused.dd
//	a hedge counts as a request                         hedge.dd, quota TestBeside
//	a hedge takes what somebody waits for               hedge_refused.dd
//	a hedge takes what a contract reserves              hedge_refused.dd
//	a race ends with the first failure                  TestHedges, hedge.dd
//	who loses a race has failed                         route TestLostRace
//	a retry is counted against no budget                TestRetryWave, retries.dd, retry_late.dd
//	a retry goes where an open breaker is               TestRetryWave, retry_breaker.dd
//	a retry waits for what has had its retries          retry_late.dd
//	a retry keeps the place of its first attempt        retry_order.dd
//	a pool that sheds gets retries                      TestImpatienceDoesNotShed, retry_order.dd
//	a caller's own impatience counts as shedding        TestImpatienceDoesNotShed, retry_order.dd
//	others pass a large head for ever                   memory.dd
//	prefill is held to the end                          memory.dd, life.dd
//	a pool without backends keeps what waits            health.dd
//	guests take more than the headroom                  TestGuestsLeaveWhatIsNotTheirs, regions.dd
//	guests start before the region's own                TestGuestsLeaveWhatIsNotTheirs, TestGuestsKeepTheWaitBound
//	a request leaves a home that serves it              TestGuestsLeaveWhatIsNotTheirs, regions.dd
//	a place is kept from guests that others had got     regions_kept.dd
//	two regions that come back change places            regions_meet.dd, TestGuestsLeaveWhatIsNotTheirs
//	all of it comes back at once                        regions.dd, route TestSiteComesBackByItsRamp
//	a step back of the clock refills                    quota TestTimeNeverGoesBack
//	a step back of the clock reopens a window           quota windows.dd
//	a copy waits, or runs in headroom                   TestCopiesLeaveWhatIsKept, TestOracle
//	a request waits for a copy                          TestWorkConserving, TestRequestsTakeTheirPlacesFromCopies, proxy TestCopyYields
//	a copy counts to its tenant                         TestCopiesChangeNothing, proxy TestCopiesAreNotSeen
//	failing copies open a breaker of requests           TestCopiesAndBreakers
//	a caller that leaves keeps what it held             admit TestCancelWhileQueued, TestCancelRacesWithGrant
//	what waits for its caller's limit is demand         TestOwnLimitIsNoDemand
//	what left the queue is demand for ever              TestOracle
//	what was refused for want of room is no demand      TestRefusedIsDemand
//	nothing wakes the gate when time alone decides      admit TestQueueTimeoutIsExact, TestExpiryFreesThePlace
//	what a request holds is lost to a debt of others    TestHistories, hard_debt.dd, quota TestRoom
//	a guest is taken to hold what home costs            TestHistories, TestGuestsLeaveWhatIsNotTheirs
//
// # Looking
//
// Dump shows all pools, one with its flows and oldest requests, a tenant, or one
// request with everything in its way: what Next would have asked of it, asked apart.
// It is bounded by its limit and changes nothing that is decided. Refusals are
// counted by pool, class, tenant and reason where a wait ends without a place or an
// arrival is refused for a limit or for want of capacity.
//
// # What it does not do
//
// Who is served next is sched's, what a backend can take route's. Degradation and leases
// are not there. It writes nothing down: the ledger does.
package engine
