// Package inflight bounds the number of calls in flight. Such a bound is also called a bulkhead: a
// service that answers slowly then occupies only a part of the program.
//
//	var reports = inflight.New(inflight.Config{Limit: 50, MaxWaiters: 100, Name: "reports"})
//
//	err := reports.Run(ctx, func(ctx context.Context) error {
//		return client.Report(ctx, query)
//	})
//	if errors.Is(err, inflight.ErrFull) { … } // the call was not made
//
// Each call occupies a slot until it has ended. If no slot is free, a caller waits for one in order
// of arrival, or returns at once without one: see [Limiter.TryAcquire]. A call that is not a
// function call acquires its slot and releases it at its end:
//
//	slot, err := reports.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { slot.Done(ctx, err) }()
//
// The bound of a healthy service is about its calls per second times its latency in seconds
// (Little's law), plus a reserve. A gate of package weir has a bound too: see weir.Config.
//
// An overloaded server can choose which callers it answers: see [Queue] for priorities, tenants and
// a bound on the time spent waiting, and weirhttp.Shed for requests.
//
// # Config
//
//	Config      Default              Change it
//	Limit       required             to what a healthy service needs, plus a reserve
//	Adaptive    false                if the service can be overloaded or lose capacity
//	MaxWaiters  0                    to refuse callers instead of letting the queue grow
//	Queue       in order of arrival  to bound the wait, or for priorities and tenants
//	Name        none                 to export metrics
//	Shadow      false                to see what the bound would refuse, before it refuses
//
// # Flow
//
//	call ──► a free slot? ──────────────────────────► call in flight ──► Done frees the slot
//	             │ no                                       ▲
//	             ├──► TryAcquire, or MaxWaiters wait:       │
//	             │    refused                               │ a slot is free
//	             └──► waits in order of arrival ────────────┤
//	                                                        └──► the context ends: refused
//
// With Config.Adaptive the limiter finds the limit. It is for a service that can be overloaded or
// lose capacity, while callers allow a limited time. It refuses a call only on evidence that
// refusing helps: most calls fail late or are slow, hardly any is fast, and the calls in flight
// must be expected to take too long. It does not help if one of several hosts is overloaded and the
// others are well. docs/inflight.md has the rules, and docs/accuracy.md the bounds.
//
// # Guarantees
//
//   - The error of a refused call is a *[FullError] that matches [ErrFull] and weir.ErrRefused. It
//     says when a retry is worthwhile, estimated from the rate at which slots are released and from
//     the waiters that come first.
//   - Acquiring and releasing a slot takes two atomic operations, no lock and no clock if the limit
//     is fixed.
//   - Limiters start no goroutines.
package inflight
