// Package weir protects a program from the services that it calls. It limits the rate of calls,
// stops calling a service that fails, and counts each call once. Alert rules and exporters read the
// same counts that the circuit breaker uses.
//
// A [Gate] guards the calls to one service:
//
//	var payments = weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})
//
//	receipt, err := weir.Do(ctx, payments, func(ctx context.Context) (*Receipt, error) {
//		return client.Charge(ctx, order)
//	})
//
// The error of a refused call matches [ErrRefused], and breaker.ErrOpen, limiter.ErrLimited or
// inflight.ErrFull, or it is a [HopelessError]. It says why the call was refused, and [RetryAfter]
// returns when to retry.
//
// [DoOr] calls a fallback if a call is refused:
//
//	price, err := weir.DoOr(ctx, prices, fetch, func(ctx context.Context, refusal error) (int, error) {
//		return cache.Price(ctx, id)
//	})
//
// A [Group] has one gate per key, such as a host or a tenant:
//
//	var tenants = weir.NewGroup[string]("tenants", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(20)}})
//
//	err := tenants.Get(id).Run(ctx, func(ctx context.Context) error { … })
//
// [Join] makes a gate of a breaker and limits that you have made yourself. One of them can be a
// limit that a fleet of processes shares.
//
// If the cost of a call is known only afterwards, such as the tokens of a language model, call it
// with WithCost.
//
// # Config
//
//	Config          Default                       Change it
//	Rate            no limit                      if the service allows you a rate
//	Burst           the calls of one second       if the service allows more or fewer calls at once
//	                at Rate
//	MaxConcurrent   0                             if slow calls should not take up the whole program
//	Adaptive        false                         if the service can be overloaded or lose capacity
//	MaxWait         0                             if callers would rather wait than be refused
//	RetryShare      0                             if callers retry or hedge
//	RetryBurst      10                            if there are few first calls
//	RefuseHopeless  false                         if callers have deadlines that are often too short
//	Breaker         the defaults of               to open sooner or later: see package breaker
//	                breaker.Config
//
// # Flow
//
// Each call takes these steps:
//
//	check the breaker ──► take a token ──► take a slot ──► acquire a permit ──► call ──► record the outcome
//	 refused if open       refused if       refused if      refused if half-            success, failure
//	                       none is left     all are in      open and all probe          or ignored
//	                                        flight          slots are taken
//
// With Config.RefuseHopeless, the gate also refuses a call that will hardly be answered before its
// deadline, as the first step after the check of the breaker.
//
// # Guarantees
//
//   - A call that an open breaker refuses takes no token, and a call over a limit occupies no probe
//     slot.
//   - A refused call never reaches the service, and the breaker does not count it.
//   - Each call is counted once. Alert rules and exporters read the counts that the breaker uses.
//   - If a call panics or calls runtime.Goexit, it counts as a failure, and all that it holds is
//     released.
//   - All methods of a gate are safe for concurrent use.
//
// The parts can be used without a gate: package breaker has circuit breakers, package limiter has
// rate limiters, package inflight bounds calls in flight, package window counts calls in moving
// windows, and package alert evaluates alert rules. The exporters are separate modules. This module
// depends on the standard library only. ARCHITECTURE.md has the flow of a call in detail.
package weir
