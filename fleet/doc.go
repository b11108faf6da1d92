// Package fleet enforces limits and counts calls for many machines together, on Redis 6 or later,
// or on Valkey, stand-alone or a Cluster.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	link, err := fleet.Connect(ctx, "limits", client, fleet.LinkConfig{})
//	…
//	users := fleet.NewLimiter("users", fleet.Config{
//		Link:     link,
//		Limits:   []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(100), Burst: 50}},
//		OnOutage: fleet.FailLocal, Share: 1.0 / 3,
//	})
//
//	r, err := users.Take(ctx, "user:42", 1)
//	if err != nil {
//		return err // no decision
//	}
//	if !r.OK {
//		return fmt.Errorf("too many requests, try again in %s", r.RetryAfter)
//	}
//
// # Which limit to use
//
// L is the limit and W its window. For a TokenBucket, L is its burst, and R is the number of tokens
// that its rate adds in W.
//
//	You want to …                                use              most in any W           Redis memory per key
//	hold a rate and allow bursts                 TokenBucket      L + R                   200 bytes
//	say "100 per minute" at low cost             FixedWindow      2 L, around an edge     200 bytes
//	say "10,000 per day" in a time zone          CalendarQuota    L per period            200 bytes
//	never exceed L in any W                      SlidingWindow    L; returns W/N later    200 bytes, and 20 per bucket
//	never exceed L in any W, and use all of it   SlidingLog       L                       200 bytes, and 130 per request, or 45 up to 120
//	replace redis-cell, or share its keys        rediscell.Limit  L + R                   200 bytes
//	combine several limits                       several Limits   the least of them       the sum of them
//	limit many keys together                     Shared           that of its limit       that of its limit, per By
//	let a breaker see the calls of all machines  Calls
//
// The bounds hold for all machines together, accurate to 2µs. Leases allow more: see
// [Config].MaxLease. An outage with FailLocal also allows more: see [Config].Share. If Redis loses
// data, because a key is evicted or a replica takes over before it has received everything, the
// lost tokens are allowed again.
//
// A [Shared] limit applies to all keys together, or to groups of keys:
//
//	Limits: []fleet.Limit{
//		fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 20},           // each user
//		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000)}}, // all users
//	}
//
// [Limits] and [OnOutage] have a text form, so they can be read from a file or the environment.
//
// # Config
//
//	Config      Default     Change it
//	Link        required    to the link of this program
//	Limits      required    to the limits of each key
//	OnOutage    required    to what should happen while Redis is unavailable
//	Share       required    with FailLocal, to 1 divided by the number of nodes
//	MaxKeys     100,000     if FailLocal should guard more keys, or use less memory
//	ShareNew    false       to let keys beyond MaxKeys share one bucket
//	MaxWaiters  no bound    to refuse callers instead of letting queues grow
//	MaxDenied   10,000      to remember more refusals, or none: limiter.Off
//	MaxLease    no leases   if busy keys need too many round trips
//	ShowKeys    false       to see the keys that are refused most often
//
// [LinkConfig] has the timeout and the breaker of the connection, [CallsConfig] the window of a
// [Calls].
//
// # Flow
//
// [Config].OnOutage is the policy that decides while Redis cannot be reached, is too slow, loading,
// read-only, full, or unsure which of its nodes has the key. FailOpen allows, FailClosed refuses,
// FailLocal limits to this node's share, and FailError returns an error. There is no default.
// [Result].From says which part decided.
//
//	Take ──► deny cache ──► lease ──► breaker ──► Redis, for up to LinkConfig.Timeout
//	                                     │          │
//	                                     └──────────┴──► OnOutage: FailOpen, FailClosed, FailLocal or FailError
//
// docs/fleet.md says when the breaker of a server opens, what happens to a request whose reply was
// lost, and how keys are named. docs/redis.md says which rights the user of Redis needs.
//
// # Guarantees
//
//   - One script in Redis makes each decision, by the clock of Redis. The clocks of the machines do
//     not matter, and simultaneous requests are decided one after the other.
//   - A key takes no space before its first use, and Redis deletes it once it is idle.
//   - Limiters with the same prefix, name and key share a limit. Limiters with different limits
//     need different names, except those of package rediscell.
//   - Settle corrects the cost of a request once it is known, and counts once, however often it is
//     sent. In any span, what is used is at most what the limits allow, and what the requests in
//     flight at its end have used beyond their reservations. A SlidingWindow and a SlidingLog keep
//     that for spans of one Window.
//   - An error of a limiter means that there is no decision. A refusal is not an error, but a
//     Result that is not OK. Wait returns a *limiter.LimitedError if waiting is pointless.
//   - Errors of Redis have the type *StoreError and match [ErrUnavailable], [ErrForeign] or
//     [ErrServer]. Their text contains neither addresses nor credentials.
package fleet
