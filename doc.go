// Package weir guards calls to other services: it throttles what a caller sends,
// stops calling what fails, and counts each call once, so that alerts and exported
// statistics read the same figures that the breaker judges.
//
// A [Gate] stands before one service:
//
//	var payments = weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})
//
//	receipt, err := weir.Do(ctx, payments, func(ctx context.Context) (*Receipt, error) {
//		return client.Charge(ctx, order)
//	})
//
// Each call goes the same way:
//
//	look at the breaker ──► take a token ──► take a permit ──► call ──► book the outcome
//	 open: refused, and      none left, or    half-open: a probe        success, failure,
//	 no token is spent       the service      at most Probes of them    or no verdict
//	                         asked to wait:
//	                         refused, and
//	                         no probe is out
//
// What is refused has an error that matches [ErrRefused], says why, and tells when
// to come back ([RetryAfter]). It also matches breaker.ErrOpen or limiter.ErrLimited.
//
// The parts stand alone as well: package breaker stops calls, package limiter
// throttles them, package window counts, package alert judges. The exporters are
// modules of their own, so that nobody who does without them depends on what they
// need; the core needs the standard library alone.
package weir
