// Package breaker implements circuit breakers. A breaker stops calls to a service that fails, and
// lets calls through again when the service has recovered.
//
//	var users = breaker.New("users", breaker.Config{})
//
//	user, err := breaker.Do(ctx, users, func(ctx context.Context) (*User, error) {
//		return client.Get(ctx, id)
//	})
//	if errors.Is(err, breaker.ErrOpen) { … } // refused: the call was not made
//
// By default every error is a failure, except errors of cancelled and refused calls.
// Config.Classify changes that:
//
//	var users = breaker.New("users", breaker.Config{Classify: breaker.Accept(sql.ErrNoRows)})
//
// For a call that is not a function call, acquire a [Permit] and record the result:
//
//	permit, err := stream.Allow()
//	if err != nil {
//		return err
//	}
//	defer permit.Record(ctx, nil, breaker.Failure) // counts only if Done is not called
//	err = send(ctx)
//	permit.Done(ctx, err)
//
// A [Group] has one breaker per key, such as a tenant, in bounded memory:
//
//	var tenants = breaker.NewGroup[string]("tenants", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 50}})
//
//	user, err := breaker.Do(ctx, tenants.Get(id), fetchUser)
//
// Package throttle refuses a share of the calls to an overloaded service, instead of all calls.
//
// # Config
//
//	Config               Default          Change it
//	FailureRate          0.5              to open at a lower or a higher share of failures
//	SlowCall             0                to open on slow calls too: those longer than this
//	SlowRate             0.5              to open at a lower or a higher share of slow calls
//	Latency              false            to see the durations of calls
//	ConsecutiveFailures  0                to open on failures in a row that no success interrupts
//	FailureRun           10               to open after fewer or more failures at low traffic
//	Trip                 none             to open on a rule of your own
//	SharedCounts         none             to judge the calls of all machines: see fleet.Calls
//	MinCalls             20               if a failure rate over 20 calls says too little
//	Window               10s              to notice partial outages sooner, or at less traffic
//	Buckets              10               if old results should leave the window in smaller parts
//	LastCalls            0                to compute rates over a number of calls, not a time
//	Cooldown             1s               if the service needs more time to recover
//	CooldownFactor       1                to probe a service that stays down less and less often
//	MaxCooldown          5m               to bound the growth by CooldownFactor
//	CooldownJitter       0                if breakers that open at once should not probe at once
//	MaxRetryAfter        1m               if the service may ask for a longer wait
//	Probes               3                if one success says too little or too much
//	ProbeTimeout         10s              if calls take longer than that
//	HalfOpenTimeout      0                if missing results of probes should open the breaker
//	Recovery             20s              for a service that takes all its load back at once: Off
//	Force                none             to hold a state, or to refuse no call: Shadow
//	ForceReason          "forced"         to tell refused callers why Force is set
//	Classify             DefaultClassify  if some errors are no failures
//	KeepFailures         8                to see more of the failures that opened the breaker
//	DescribeFailure      none             to add a trace ID to a failure, or to remove a secret
//	Trace                none             to have traces of calls as exemplars of Latency
//	OnChange             none             to log transitions, or to act on them
//
// # States
//
// A breaker counts the results of its calls in a moving window. When enough calls fail, it opens
// and refuses all calls until the cooldown is over. Then it is half-open: it lets a few calls
// through as probes. If they succeed, it is recovering: it lets a share of the calls through, which
// grows while they go well. If Config.Recovery is Off, it closes at once.
//
//	         failures reach a limit            cooldown over
//	Closed ───────────────────────► Open ───────────────────────► HalfOpen
//	   ▲                            ▲  ▲                            │    │
//	   │                            │  └────────────────────────────┘    │
//	   │               calls only   │           probes failed            │
//	   │ calls go well    fail      │                  probes succeeded  │
//	   └───────────────── Recovering ◄───────────────────────────────────┘
//
// ForcedOpen, ForcedClosed, Disabled and Shadow are overrides. Force and Release set and lift them
// by hand, Config.Force and Reconfigure by configuration. docs/breaker.md has a table of all
// states, and says how a breaker decides.
//
// # Guarantees
//
//   - A limit is reached when the rate is equal to it. The two are compared in whole numbers. No
//     rate is compared below Config.MinCalls. The window moves by one bucket at a time: it covers
//     between N−1 and N of its N buckets.
//   - At most Config.Probes calls are in flight while the breaker is half-open. A probe that never
//     returns (a panic, a hang, a forgotten permit) does not keep the breaker half-open.
//   - A result counts for the state that let the call through. A result that comes after that state
//     has ended changes nothing and counts in the metric weir.breaker.late_results.
//   - Failures before the breaker closed do not count after it closed.
//   - A package variable can be used in bubbles of testing/synctest, in which the clock begins
//     anew. A breaker whose clock is another one than before starts again as new, but its override
//     and its totals stay.
//   - If a call panics, it counts as a failure and the panic propagates.
//   - A call that its caller cancelled is ignored unless it succeeded. A call that an inner
//     breaker, throttle or limiter refused is ignored, whatever Config.Classify returns.
//   - Callers with short deadlines do not open the breaker for others, and neither does a process
//     that was suspended.
//   - There is a way back from every state but an override: docs/breaker.md has the bound.
//   - RetryAfter of a refusal is never 0, so a caller that sleeps for it between retries does not
//     spin.
//   - A call through a closed breaker reads the clock once, or twice if SlowCall or Latency is set
//     or the call is a sample. A refusal reads the clock once. Neither allocates memory, except
//     about 3 kB per sample. No goroutine or timer is started.
package breaker
