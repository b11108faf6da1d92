// Package breaker stops calls to a service that fails, and lets them through again when it has
// recovered.
//
//	var users = breaker.New("users", breaker.Config{})
//
//	user, err := breaker.Do(ctx, users, func(ctx context.Context) (*User, error) {
//		return client.Get(ctx, id)
//	})
//	if errors.Is(err, breaker.ErrOpen) { … } // refused: the call was not made
//
// By default every error is a failure, except for those of cancelled and refused calls. A
// [Classifier] says otherwise:
//
//	var users = breaker.New("users", breaker.Config{Classify: breaker.Accept(sql.ErrNoRows)})
//
// Around something that is not a function call, acquire a [Permit], and record how the call ended:
//
//	permit, err := stream.Allow()
//	if err != nil {
//		return err
//	}
//	defer permit.Record(breaker.Failure) // counts only after a panic, or a return before Done
//	err = send(ctx)
//	permit.Done(ctx, err)
//
// A breaker counts the outcomes of its calls in a moving window. If enough of them failed it opens
// and refuses all calls until a cooldown is over. Then it is half-open: it lets a few calls through
// as probes, and closes or opens again by their results:
//
//	         failure rate reached              cooldown over
//	Closed ───────────────────────► Open ───────────────────────► HalfOpen
//	   ▲                              ▲                            │    │
//	   │                              └────────────────────────────┘    │
//	   │                                  probes failed                 │
//	   └────────────────────────────────────────────────────────────────┘
//	                              probes succeeded
//
// Besides the failure rate, a breaker can open on the rate of slow calls, on calls that hang, on
// failures in a row, on a function of yours, and on counts that a fleet shares: see [Config].
//
// By hand, OpenFor opens it, Reset closes it and Reconfigure changes its Config. Force lays an
// override over it, under which its state is kept until Release. In the state [Shadow] it lets
// every call through, and ShadowTotals returns how many calls a breaker of the same Config would
// have refused, and how many times it would have opened.
//
// A [Group] has one breaker per key, such as a tenant, in bounded memory:
//
//	var tenants = breaker.NewGroup[string]("tenants", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 50}})
//
//	user, err := breaker.Do(ctx, tenants.Get(id), fetchUser)
//
// Package throttle sends less to an overloaded service, instead of nothing.
//
// You can rely on the following:
//
//   - A rate is reached when it is equal to the limit, compared in whole numbers. No rate is
//     compared below Config.MinCalls. The window moves by one bucket at a time: it covers between
//     N−1 and N buckets of N.
//   - At most Config.Probes calls are in flight while the breaker is half-open. A probe that never
//     returns (a panic, a hang, a forgotten permit) does not keep it half-open.
//   - A result counts for the state that let the call through. A later result changes nothing and
//     is counted in the metric weir.breaker.late_results.
//   - Failures before the breaker closed do not count after it.
//   - If a call panics, it counts as a failure and the panic propagates.
//   - A call that its caller cancelled is ignored unless it succeeded, and so is a call that an
//     inner breaker, throttle or limiter refused, whatever Config.Classify says.
//   - RetryAfter of a refusal is never 0, so that sleeping for it between tries does not spin.
//   - A call through a closed breaker reads the clock once, or twice if SlowCall, Latency or Active
//     is set; a refusal reads it once. Neither allocates. No goroutine or timer is ever started.
package breaker
