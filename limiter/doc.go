// Package limiter limits the rate of calls. For a bound on the calls in flight see package
// inflight.
//
// A limiter hands out tokens or refuses, and says when to try again:
//
//	var signup = limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(30), Burst: 5})
//
//	if r := signup.Take(1); !r.OK {
//		return fmt.Errorf("too many requests, try again in %s", r.RetryAfter)
//	}
//
// A request over the limit can be refused (Take), wait in order of arrival (Wait), or be diverted
// (weir.DoOr). Wait returns at once if the tokens cannot be there before the deadline of its
// context:
//
//	ctx, cancel := context.WithTimeout(ctx, time.Second)
//	defer cancel()
//	if err := signup.Wait(ctx, 1); err != nil {
//		return err
//	}
//
// A [Group] has one limit per key, such as a user:
//
//	var users = limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(5), Burst: 10})
//
//	if r := users.Get(id).Take(1); !r.OK { … }
//
// If the cost of a request is known only afterwards, reserve an estimate and settle what it has
// used, in both directions. [PerRequest] counts requests beside what they cost:
//
//	r := limiter.Reserve(limiter.NewJoint("model", limiter.PerRequest(requests), tokens), estimate)
//	…
//	r.Settle(used)
//
// [Estimates] are made from what the requests of a key have cost before.
//
// In this table L is the limit and W its window. For a token bucket, L is its burst and R the
// tokens added in a window.
//
//	purpose                                 constructor       most tokens in any W      memory              decision
//	a rate that allows bursts               NewTokenBucket    L + R                     500 B               lock-free
//	"100 per minute" at low cost            NewFixedWindow    2 L, around a boundary    250 B               mutex
//	never more than L in any W              NewSlidingWindow  L; returned W/N late      16 B per part       mutex
//	never more than L, and all of L         NewSlidingLog     L                         32 B per entry      mutex
//	several limits at once                  NewJoint          the smallest of them      that of each        that of each
//	calls one at a time, and a queue        NewLeakyBucket    R + 1                     200 B per waiter    mutex
//	the pace of Guava, paid afterwards      package guava     R + those of a second     200 B per waiter    mutex
//	so many per day, week or month          package quota     L in each of them         100 B per key       mutex
//	a limit per user, address or action     NewGroup          as a token bucket         45 B per key, + key a mutex
//
// To see what a limit does, or would do in shadow mode, give it a Name. For a limiter of another
// package, use [NewJoint].
//
// # Config
//
// The Config of a token bucket; those of the others differ in a few fields:
//
//	TokenBucketConfig  Default            Change it
//	Rate               required           to the rate that you allow
//	Burst              the tokens of one  to allow more or fewer tokens at once
//	                   second at the Rate
//	MaxWaiters         no bound           to refuse callers instead of letting the queue grow
//	Name               none               to export metrics
//	Shadow             false              to see what the limit would refuse, before it refuses
//
// # Flow
//
//	Take ──► enough tokens? ──► OK
//	             │ no
//	             └──► refused, with RetryAfter
//
//	Wait ──► enough tokens, and no waiter? ──► OK
//	             │ no
//	             ├──► refused at once: the deadline is too near, or MaxWaiters callers wait
//	             └──► waits in order of arrival ──► OK, or the context ends
//
// # Guarantees
//
//   - Waiters are served in order of arrival. A waiter is charged when it is served: a waiter that
//     gives up is charged nothing, and a change of the rate applies to all waiters. A wait that
//     cannot succeed is refused at once.
//   - Refusals are errors of type *[LimitedError] that match [ErrLimited] and weir.ErrRefused.
//   - Take does not allocate, except when a sliding log grows or a [Group] meets a new key. Only
//     limiters with a name keep statistics.
//   - Limiters start no goroutines, but a timer that ends a wait runs its function in one: see
//     [time.AfterFunc].
//   - Limiters read the monotonic clock, so steps of the wall clock do not affect them. TakeAt
//     takes a time instead, for replays and simulations. The first time may be up to 36 years
//     before the creation of the limiter or after it. The limiter then begins at that time. An
//     earlier time for TakeAt than before never adds tokens.
//   - A package variable can be used in bubbles of testing/synctest, in which the clock begins
//     anew. A limiter whose clock is another one than before starts again as new. An earlier time
//     for TakeAt never does that.
//
// docs/accuracy.md has the bounds of each limiter, and docs/numbers.md helps to choose the numbers.
package limiter
