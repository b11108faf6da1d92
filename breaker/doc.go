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
// The other four states are overrides, with a reason. Force sets an override by hand and Release
// lifts it. Config.Force sets one that Reconfigure lifts, for all keys of a group. An override by
// hand lies over that of the Config, and both lie over the automatic state, which is kept and whose
// cooldown runs on.
//
//	State         Calls    Results decide       Counts returns                 Ends
//	Closed        pass     to open              the window since it closed     a limit of Config is reached: Open
//	Open          refused  nothing              the counts that opened it      the cooldown is over: HalfOpen
//	HalfOpen      probes   to recover or open   the results of the probes      enough results: Recovering or Open;
//	                                                                           HalfOpenTimeout is over: Open
//	Recovering    a share  how large it is      the window since it began      calls go well, or only fail, for
//	                                                                           Recovery: Closed or Open
//	ForcedOpen    refused  nothing              nothing                        the override is lifted: the state below
//	ForcedClosed  pass     nothing              the window                     likewise
//	Disabled      pass     nothing              nothing: calls do not count    likewise
//	Shadow        pass     nothing              the window                     likewise
//
// In the state Shadow a breaker refuses nothing and reports what it would have done: ShadowTotals
// returns how many times it would have opened and how many calls it would have refused.
//
// # Which calls a failure is judged among
//
// Results arrive in the order in which calls end. If a service refuses some calls at once and
// answers the others after a second, ten failures may arrive before the first success. So the
// breaker counts the calls in flight that began before a call that has ended, as if they succeed.
// It opens, by a rate of failures or by a run of them, only if the failures reach the limit even
// then. Consecutive failures, slow calls, Trip and SharedCounts are judged as calls end. If
// FailureRun is Off, as it is by default with LastCalls, rates are judged as calls end too, as in
// other libraries.
//
// A closed breaker counts calls in flight only while it samples calls: when it is created or
// closes, every 10s, and from the second failure in a row on. The results of calls that began
// before that count, but do not open the breaker before a later call has ended.
//
// # Runs of failures
//
// If a window of ten seconds has few calls, its failure rate says little. If it is full of
// successes, it takes long until the failure rate is high. So a breaker also opens on a run of
// failures, which is counted in calls and not in time: 10 failures in a row open it, even if hours
// lie between them, and so do 12 failures and 2 successes. A success takes back FailureRate / (1 −
// FailureRate) failures, one by default, so a run gets longer only while more than FailureRate of
// the calls fail. A busy breaker needs a longer run, by one failure per six calls in the window: a
// total outage opens it after about a sixth of the window, and a shorter burst of failures does not
// open it.
//
// This is Page's CUSUM test (1954) between two failure rates, 20 % and 80 % by default. If 20 % of
// the calls fail by chance, each independently of the others, at least a million calls lie between
// two runs on average (Lorden 1971). FailureRate opens the breaker more often than that if the
// window has hardly more than MinCalls calls. docs/numbers.md has the numbers of both, and those
// for failures that come in clusters. Config.FailureRun sets the length of the run and switches it
// off.
//
// A run is strong evidence that the service is down, so few probes are made after it. If the first
// probe fails, the breaker opens again. From then on, seven calls are refused before the next
// probe, and no probe is made before the cooldown is over. So at low traffic one call in eight is a
// probe while the service is down, and the breaker notices after eight calls, and not after a long
// time, that the service is back. If fewer calls come than during the run, the probe is made after
// the time that eight calls of the run took, but at most 10min. RetryAfter returns that time.
//
// # Other limits
//
// A breaker can also open on the rate of slow calls, on consecutive failures, on the result of
// Config.Trip, and on counts that a fleet shares: see [Config]. OpenFor opens it and Reset closes
// it by hand. Reconfigure changes its Config.
//
// A call that hangs counts when it ends. Give each call a deadline: then a service that hangs fails
// after that time. A bound on the calls in flight limits those that hang until then: see
// weir.Config.MaxConcurrent and package inflight.
//
// # Deadlines that say nothing
//
// A call that fails after the deadline of its context is ignored in two cases. An outcome that
// Permit.Record records counts in any case.
//
//   - The deadline was shorter than a successful call usually takes. So callers with short
//     deadlines do not open the breaker for others. While nothing is known of successful calls, a
//     deadline counts only if no other call is in flight.
//   - The process was suspended when the deadline passed, so the result says nothing about the
//     service. The breaker assumes this if the result came more than 1s after the deadline, and no
//     call ended for at least 1s meanwhile.
//
// The usual duration is the median. The breaker learns it from samples of 64 calls that begin one
// after the other, or of 16 if they took 20s to come. It takes them at the beginning, whenever it
// closes and every 10s, and one after the other for 10s after a deadline has passed. A call that is
// still running, or was ended by its deadline, would have succeeded later or never: the median is
// the estimate of Kaplan and Meier (1958). So it does not matter how many of the callers have short
// deadlines. If all calls of the first sample end and less than half of them could succeed, each
// deadline counts.
//
// When a service becomes slow, the median grows, and each deadline would look too short. So the
// breaker does not use a median if a deadline counted as a failure since its sample began, unless
// the median in use is 5min old.
//
// These rules have the following limits:
//
//   - A breaker that begins while the service is slow regards slow calls as usual. A key that
//     its group has evicted begins without a usual duration.
//   - A service that answers no call opens the breaker: after MinCalls ignored calls in a row
//     without a success for Window (10s with LastCalls) and twice the usual duration, further ones
//     count as failures. Probes with short deadlines never decide.
//   - If calls are not timed when the first deadline passes, a call that is in flight then counts
//     only if its own deadline is later by at least the usual duration. This may delay an opening
//     by that duration.
//   - Successes after the process was suspended can be slow calls.
//
// # Last failures
//
// A breaker keeps its last 8 failures since it closed: see [FailedCall]. When calls open the
// breaker, the Change and the OpenErrors of this opening get a copy of these failures in their
// field LastFailures. The copy never changes. LogChanges logs them, and [Breaker.Explain] returns
// them as text, for an alert or a status page. Of a burst of failures the breaker keeps the first
// 8, and then one in each millisecond. Successes, ignored calls and late results are not kept. Slow
// calls are kept only if they failed.
//
// The message of an error may contain data that the client library put there: addresses, URLs with
// their queries, the text of a server's answer. The breaker keeps no requests, responses or other
// values, but it cannot tell a secret from other text. Config.DescribeFailure can clear or replace
// the message, and add a note such as a trace ID. If Config.KeepFailures is Off, nothing is kept.
// The memory is at most 1.5 kB per failure, 12 kB per breaker by default, and nothing before the
// first failure.
//
// The last failures come with a margin, such as "2 failures fewer in this window would not have
// opened it". It is exact: if the last 2 failures among the calls that opened the breaker had been
// successes, no rule of its Config would have opened it. If only the last failure had been a
// success, the breaker would have opened. The same holds for slow calls. There is no margin if
// another rule, such as Trip or SharedCounts, might have opened the breaker anyway. There is none
// either if probes opened it, or if it was recovering.
//
// # Recovery
//
// A service that comes back with few of its servers fails again if all its callers come back at
// once. A recovering breaker lets one of every eight calls through at first, and judges their
// results in rounds, by FailureRate and SlowRate. A good round doubles the share, and a failed one
// halves it, down to one of eight. This is how TCP finds the capacity of a link (RFC 5681, section
// 3.1); other libraries and proxies call it slow start.
//
// While a share of the calls passes, the first call of a round decides, or the majority of its
// first calls if they end in a different order. So a breaker with few calls follows the service as
// fast as a breaker with many. Only calls that began in a round are judged in it, so the share
// doubles at most once per call's duration. A missing result is no failure: if a round is not
// decided for ProbeTimeout, the share doubles. When all calls pass, they are judged as those of a
// closed breaker are, by the results of the calls that began since the share last fell. So the
// verdict is as sure as the traffic allows.
//
// Of any n calls in a row at most ⌈n/8⌉ pass at the smallest share, plus one per second. No random
// numbers are used: every eighth, fourth or second call passes. The breaker closes at the first
// call at which all calls pass and no round has failed for Recovery. It opens when the share is
// smallest and no round was good for Recovery.
//
// There is a way back from every state. If a service answers well from some time on, and calls come
// steadily, all of them pass after at most
//
//	Window + Cooldown + Recovery + ProbeTimeout + 5 × the longest call + 40 calls + 3s
//
// whatever has happened before. Cooldown is the latest one here, or the wait that the service asked
// for, and Window is the time of LastCalls calls if that is set. If some calls fail by chance, a
// round or a probe may fail, and it takes longer. Overrides do not end by themselves.
//
// # When refused callers come back
//
// An error of a refused call has a method RetryAfter. Callers that obey it do not come back to the
// service together:
//
//	State       RetryAfter returns
//	Open        the time until a call passes: until the cooldown is over, or a probe is due after a
//	            run of failures. All callers of a breaker are told the same time, and at most
//	            Config.Probes of their calls pass then.
//	HalfOpen    the time until a probe is due after a run of failures. If probes are in flight, the
//	            time that the oldest one has been, plus up to 1s: the refused callers come back
//	            soon after the probes end, and one after the other.
//	Recovering  1s, after which a lone call passes, plus up to 1s.
//	ForcedOpen  Config.Cooldown.
//
// The part of a second is the next number of an evenly spread sequence, so each call of RetryAfter
// returns a different duration. No call is promised to pass: nothing is reserved for the callers.
//
// A service that asks its clients to wait asks all of them at once. Each breaker that opens
// therefore adds a share of the wait, up to a tenth by default: see Config.CooldownJitter. The
// share follows from the time at which the breaker opens, in nanoseconds. So the breakers of a
// fleet add different shares, and a replay adds the same share each time.
//
// # Groups
//
// A [Group] has one breaker per key, such as a tenant, in bounded memory:
//
//	var tenants = breaker.NewGroup[string]("tenants", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 50}})
//
//	user, err := breaker.Do(ctx, tenants.Get(id), fetchUser)
//
// A fault of the caller, such as a lost network or a wrong certificate, makes the calls of all keys
// fail, and all their breakers open. GroupConfig.MaxOpen bounds the share of keys that may be open
// at once, as max_ejection_percent does in Envoy:
//
//   - MaxOpen is a share of all keys that the group has, with or without calls. One key may always
//     open.
//   - A key is open from its opening until it closes. It keeps its place while it is half-open or
//     recovering, because it refuses calls then, and may open again. A key that is forgotten gives
//     its place back.
//   - A key that may not open stays closed, counts its calls, and is judged at each result. So it
//     opens at the first result after a place is free, if the rules still say so. Config.OnChange
//     gets a Change from Closed to Closed with the reason, at most once per Cooldown, or per second
//     if that is longer. The metric weir.breaker.group.prevented_openings counts these.
//   - MaxOpen does not bind keys that are opened by Force, Config.Force, Release or OpenFor. They
//     take places too. The state Shadow does not take MaxOpen into account.
//   - If MaxOpen or the number of keys falls, open keys stay open, and no other key opens until
//     enough of them have closed.
//
// MaxOpen is off by default: in an outage of all services, the keys that may not open would keep
// sending calls to services that are down.
//
// Package throttle refuses a share of the calls to an overloaded service, instead of all calls.
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
//   - RetryAfter of a refusal is never 0, so a caller that sleeps for it between retries does not
//     spin.
//   - A call through a closed breaker reads the clock once, or twice if SlowCall or Latency is set
//     or the call is a sample. A refusal reads the clock once. Neither allocates memory, except
//     about 3 kB per sample. No goroutine or timer is started.
package breaker
