// Package weir guards calls to other services. It limits how many calls are made, stops calling a
// service that fails, and counts each call once, so that alerts and exported statistics read the
// same figures that the breaker judges.
//
// A [Gate] stands before one service:
//
//	var payments = weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})
//
//	receipt, err := weir.Do(ctx, payments, func(ctx context.Context) (*Receipt, error) {
//		return client.Charge(ctx, order)
//	})
//
// Each call takes the same steps:
//
//	look at the breaker ──► take a token ──► take a permit ──► call ──► record the outcome
//	 open: refused, and      none left, or    half-open: a probe        success, failure,
//	 no token is spent       the service      at most Probes of them    or no verdict
//	                         asked to wait:
//	                         refused, and
//	                         no probe is out
//
// The error of a refused call matches [ErrRefused], says why, and says when to retry: see
// [RetryAfter]. It also matches breaker.ErrOpen or limiter.ErrLimited.
//
// [DoOr] answers a refused call from elsewhere:
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
// [Join] makes a gate of a breaker and of limits that you have made yourself, one of a fleet among
// them.
//
// The parts can be used alone: package breaker stops calls, package limiter limits them, package
// window counts them, and package alert evaluates rules. The exporters are modules of their own. This
// module needs the standard library alone.
package weir
