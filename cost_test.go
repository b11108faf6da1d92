package weir_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// bucketOf returns a bucket of n tokens that refills in a minute.
func bucketOf(n int) *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(float64(n)), Burst: n})
}

// keysOf is bucketOf for keys.
func keysOf(n int) *limiter.Group[string] {
	return limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(float64(n)), Burst: n})
}

// joinCosts returns a gate of a limit of calls and one of costs.
func joinCosts(calls, costs limiter.Limiter, maxWait time.Duration) *weir.Gate {
	return weir.Join("model", weir.Parts{Breaker: breaker.New("model", breaker.Config{}), Limiter: calls, Costs: costs, MaxWait: maxWait})
}

func settle(t *testing.T, cost *weir.Cost, n int) {
	t.Helper()
	if err := cost.Settle(n); err != nil {
		t.Error(err)
	}
}

func callCosting(g *weir.Gate, estimate int) (*weir.Cost, error) {
	ctx, cost := weir.WithCost(bg(), estimate)
	return cost, g.Run(ctx, succeed)
}

func TestACallTakesWhatItCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, costs := bucketOf(3), bucketOf(1000)
		g := joinCosts(calls, costs, 0)
		_, err := callCosting(g, 400)
		require.NoError(t, err)
		require.Equal(t, []int{2, 600}, []int{calls.Take(0).Remaining, costs.Take(0).Remaining})

		_, err = callCosting(g, 601)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, 60*time.Millisecond, weir.RetryAfter(err))
		require.Equal(t, []int{2, 600}, []int{calls.Take(0).Remaining, costs.Take(0).Remaining}, "a refused call takes nothing")

		_, err = callCosting(g, 1001)
		require.Equal(t, limiter.Never, weir.RetryAfter(err), "it costs more than Burst")

		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, 599, costs.Take(0).Remaining, "a call costs 1 without WithCost")
		_, err = callCosting(g, -5)
		require.NoError(t, err)
		require.Equal(t, 598, costs.Take(0).Remaining, "and at least 1")

		_, err = callCosting(g, 1)
		require.ErrorIs(t, err, limiter.ErrLimited, "each of the three calls has taken a token of Limiter")
		require.Equal(t, 20*time.Second, weir.RetryAfter(err))
	})
}

func TestGatesWithoutCostsIgnoreThem(t *testing.T) {
	g := weir.New("calls", weir.Config{Rate: limiter.PerMinute(10), Burst: 10})
	for range 10 {
		cost, err := callCosting(g, 1000)
		require.NoError(t, err)
		require.NoError(t, cost.Settle(5000))
	}
	_, err := callCosting(g, 1)
	require.ErrorIs(t, err, limiter.ErrLimited)
}

func TestSettlingACall(t *testing.T) {
	for name, c := range map[string]struct{ estimate, cost, left int }{
		"less":     {600, 100, 900},
		"as much":  {600, 600, 400},
		"nothing":  {600, 0, 1000},
		"negative": {600, -1, 1000},
		"more":     {600, 900, 100},
		"a debt":   {600, 1500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, costs := bucketOf(10), bucketOf(1000)
				cost, err := callCosting(joinCosts(calls, costs, 0), c.estimate)
				require.NoError(t, err)
				require.NoError(t, cost.Settle(c.cost))
				require.NoError(t, cost.Settle(0))
				require.NoError(t, cost.Settle(math.MaxInt))
				require.Equal(t, c.left, costs.Take(0).Remaining)
				require.Equal(t, 9, calls.Take(0).Remaining, "it stays one call")
			})
		})
	}
}

// Within the call, in a panic, in Allow, and without a call.
func TestSettleWhereTheCostBecomesKnown(t *testing.T) {
	costs := bucketOf(1000)
	g := joinCosts(nil, costs, 0)
	ctx, cost := weir.WithCost(bg(), 500)
	require.NoError(t, cost.Settle(400)) // there is no call yet
	require.Panics(t, func() {
		_ = g.Run(ctx, func(context.Context) error {
			require.NoError(t, cost.Settle(100))
			panic("after the answer has begun")
		})
	})
	require.Equal(t, 900, costs.Take(0).Remaining)

	permit, err := g.Allow(ctx)
	require.NoError(t, err)
	require.Equal(t, 400, costs.Take(0).Remaining)
	permit.Done(ctx, nil)
	require.NoError(t, cost.Settle(200))
	require.Equal(t, 700, costs.Take(0).Remaining)

	require.NoError(t, g.Run(ctx, succeed))
	require.NoError(t, joinCosts(nil, costs, 0).Run(bg(), succeed))
	require.Equal(t, 199, costs.Take(0).Remaining, "what is not settled stays taken")
}

func TestACostAtSeveralGates(t *testing.T) {
	tenant, service := bucketOf(1000), bucketOf(2000)
	outer, inner := joinCosts(nil, tenant, 0), joinCosts(nil, service, 0)
	ctx, cost := weir.WithCost(bg(), 100)
	require.NoError(t, outer.Run(ctx, func(ctx context.Context) error { return inner.Run(ctx, succeed) }))
	require.Equal(t, []int{900, 1900}, []int{tenant.Take(0).Remaining, service.Take(0).Remaining})
	require.NoError(t, cost.Settle(150))
	require.Equal(t, []int{850, 1850}, []int{tenant.Take(0).Remaining, service.Take(0).Remaining})

	// A second attempt with the same context: the first one stays charged.
	for range 2 {
		require.NoError(t, outer.Run(ctx, succeed))
	}
	require.NoError(t, cost.Settle(0))
	require.Equal(t, 750, tenant.Take(0).Remaining)
}

func TestARefundedCallCostsNothing(t *testing.T) {
	calls, costs := bucketOf(10), bucketOf(1000)
	g := joinCosts(calls, costs, 0)
	for _, settled := range []bool{false, true} {
		ctx, cost := weir.WithCost(bg(), 100)
		permit, refund, err := g.Reserve(ctx)
		require.NoError(t, err)
		if settled {
			require.NoError(t, cost.Settle(40))
		}
		permit.Record(ctx, nil, breaker.Ignored)
		refund()
		refund()
		require.NoError(t, cost.Settle(70))
	}
	require.Equal(t, 960, costs.Take(0).Remaining, "a call that is settled is a call")
	require.Equal(t, 9, calls.Take(0).Remaining)
}

func TestACallThatGetsNoSlotCostsNothing(t *testing.T) {
	costs := bucketOf(1000)
	bound := inflight.New(inflight.Config{Name: "bound", Limit: 1})
	g := weir.Join("model", weir.Parts{Breaker: breaker.New("model", breaker.Config{}), Costs: costs, InFlight: bound})
	ctx, cost := weir.WithCost(bg(), 100)
	err := g.Run(bg(), func(context.Context) error { return g.Run(ctx, succeed) })
	require.ErrorIs(t, err, inflight.ErrFull)
	require.NoError(t, cost.Settle(500))
	require.Equal(t, 999, costs.Take(0).Remaining)
}

func TestACallWaitsForWhatItCosts(t *testing.T) {
	for name, calls := range map[string]limiter.Limiter{"costs alone": nil, "calls and costs": bucketOf(100)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				costs := bucketOf(600)
				g := joinCosts(calls, costs, time.Minute)
				first, err := callCosting(g, 600)
				require.NoError(t, err)
				began := time.Now()
				var wg sync.WaitGroup
				order := make(chan int, 2)
				for _, estimate := range []int{300, 10} {
					wg.Go(func() {
						_, err := callCosting(g, estimate)
						require.NoError(t, err)
						order <- int(time.Since(began) / time.Second)
					})
					synctest.Wait()
				}
				time.Sleep(10 * time.Second)
				require.NoError(t, first.Settle(700)) // what waits pays the debt too
				wg.Wait()
				require.Equal(t, []int{40, 41}, []int{<-order, <-order}, "in order of arrival")
				_, err = callCosting(g, 700)
				require.ErrorIs(t, err, limiter.ErrLimited)
				require.Equal(t, limiter.Never, weir.RetryAfter(err))
			})
		})
	}
}

func TestMaxWaitNeedsCostsThatCanWait(t *testing.T) {
	p := weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Costs: struct{ limiter.Limiter }{bucketOf(1)}}
	require.NoError(t, p.Validate())
	p.MaxWait = time.Second
	require.ErrorContains(t, p.Validate(), "weir: MaxWait is 1s, must be 0 because Costs is a struct")
}

func TestARemoteThatLimitsCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := &charged{remote: newRemote(1000)}, bucketOf(10)
		p := weir.Parts{Breaker: breaker.New("model", breaker.Config{}), Limiter: calls, Remote: r, RemoteCosts: true, MaxWait: time.Minute}
		g := weir.Join("model", p)
		for _, c := range []struct{ estimate, cost, left int }{{600, 100, 900}, {500, 500, 400}, {300, 350, 50}, {10, -1, 50}} {
			ctx, cancel := context.WithCancel(bg())
			ctx, cost := weir.WithCost(ctx, c.estimate)
			require.NoError(t, g.Run(ctx, succeed))
			cancel()
			require.NoError(t, cost.Settle(c.cost))
			require.NoError(t, cost.Settle(1000))
			require.Equal(t, c.left, r.bucket.Take(0).Remaining)
		}
		require.Equal(t, 6, calls.Take(0).Remaining)

		began := time.Now()
		cost, err := callCosting(g, 110)
		require.NoError(t, err)
		require.Equal(t, 3600*time.Millisecond, time.Since(began).Round(100*time.Millisecond), "it waits for what it costs")
		r.err = errUnreachable
		require.ErrorIs(t, cost.Settle(500), errUnreachable)
		require.NoError(t, cost.Settle(500), "it is not known whether it was charged")

		time.Sleep(time.Minute)
		ctx, cost := weir.WithCost(bg(), 100)
		permit, refund, err := g.Reserve(ctx)
		require.NoError(t, err)
		permit.Record(ctx, nil, breaker.Ignored)
		refund()
		require.NoError(t, cost.Settle(70))
		require.Equal(t, []int{1000, 10}, []int{r.bucket.Take(0).Remaining, calls.Take(0).Remaining})
	})
	require.EqualError(t, weir.Parts{Breaker: breaker.New("b", breaker.Config{}), RemoteCosts: true}.Validate(),
		"weir: RemoteCosts is true, must be false without a Remote")
}

// charged is a remote that can be charged.
type charged struct {
	*remote
	err error
}

func (c *charged) Charge(ctx context.Context, n int) error {
	if c.err == nil && ctx.Err() == nil {
		r := limiter.Reserve(c.bucket, 0)
		r.Settle(n)
	}
	return errors.Join(c.err, ctx.Err())
}

func TestMetricsOfAGateWithCosts(t *testing.T) {
	g := joinCosts(bucketOf(10), bucketOf(1000), 0)
	_, err := callCosting(g, 300)
	require.NoError(t, err)
	values, _ := readMetrics(g)
	require.EqualValues(t, 700, values["weir.limiter.available"])
	require.EqualValues(t, 1000, values["weir.limiter.limit"])
	require.NotContains(t, values, "weir.limiter.tokens", "a gate counts calls, not what they cost")
	require.EqualValues(t, 1, g.Stats().Allowed)
}

func TestPlansOfAGroupOfGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := map[string]int{"a": -1, "b": -1}
		tiers := []limiter.Tier{{Rate: limiter.PerMinute(6000), Burst: 6000}}
		planOf := func(key string) int { return plan[key] }
		costs := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(600), Burst: 600, TierOf: planOf, Tiers: tiers})
		group := weir.NewGroup[string]("tenants", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 3, Cooldown: time.Hour}}})
		group.SetLimits(nil, costs)

		for _, key := range []string{"a", "b"} {
			_, err := callCosting(group.Get(key), 600)
			require.NoError(t, err)
			_, err = callCosting(group.Get(key), 1)
			require.ErrorIs(t, err, limiter.ErrLimited)
		}
		plan["a"] = 0
		cost, err := callCosting(group.Get("a"), 5000)
		require.NoError(t, err, "it has another plan now")
		_, err = callCosting(group.Get("b"), 1)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.NoError(t, cost.Settle(6500))
		_, err = callCosting(group.Get("a"), 1)
		require.ErrorIs(t, err, limiter.ErrLimited)

		time.Sleep(time.Minute)
		for range 3 {
			require.ErrorIs(t, group.Get("a").Run(bg(), fail), errDown)
		}
		for _, plan["a"] = range []int{-1, 0} {
			require.ErrorIs(t, group.Get("a").Run(bg(), succeed), breaker.ErrOpen, "another plan closes no breaker")
		}
	})
}

func TestSetLimitsOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerMinute(2), Burst: 2, MaxWait: time.Hour}}
		group := weir.NewGroup[string]("tenants", config)
		for range 2 {
			require.NoError(t, group.Get("a").Run(bg(), succeed))
		}
		var ended atomic.Int64
		call := func() {
			if group.Get("a").Run(bg(), succeed) == nil {
				ended.Add(1)
			}
		}
		go call()
		synctest.Wait()
		require.Zero(t, ended.Load(), "it waits for Gate.Rate")
		calls := keysOf(2)
		group.SetLimits(calls, nil)
		synctest.Wait()
		require.EqualValues(t, 1, ended.Load(), "and then for the new limit, which has a token")
		call()
		go call()
		synctest.Wait()
		require.EqualValues(t, 2, ended.Load())
		require.NoError(t, group.Reconfigure(config))
		synctest.Wait()
		require.EqualValues(t, 2, ended.Load(), "Reconfigure keeps the limits, and places in the queue")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 3, ended.Load())

		require.True(t, group.Forget("a"))
		require.Zero(t, calls.Get("a").Take(0).Remaining, "Forget does not change the limits")
		group.SetLimits(nil, nil)
		require.NoError(t, group.Get("a").Run(bg(), succeed), "Gate.Rate counts again")
		require.NoError(t, group.Get("a").Run(bg(), succeed))
		ctx, cancel := context.WithTimeout(bg(), time.Second)
		defer cancel()
		require.ErrorIs(t, group.Get("a").Run(ctx, succeed), limiter.ErrLimited)
	})
}

func TestCallsKeepTheirOrderThroughReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := weir.GroupConfig{Gate: weir.Config{Rate: limiter.Unlimited(), MaxWait: time.Hour}}
		group := weir.NewGroup[string]("tenants", config)
		group.SetLimits(keysOf(600), keysOf(600))
		_, err := callCosting(group.Get("a"), 600)
		require.NoError(t, err)
		began := make(chan int, 2)
		for _, cost := range []int{300, 10} {
			go func() {
				_, _ = callCosting(group.Get("a"), cost)
				began <- cost
			}()
			synctest.Wait()
			require.NoError(t, group.Reconfigure(config))
		}
		require.Equal(t, []int{300, 10}, []int{<-began, <-began})
	})
}

// A call that has waited for what it costs is one call for a limit of calls.
func TestALimitOfCallsTakesThePlaceOfOneOfCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := weir.NewGroup[string]("tenants", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Unlimited(), MaxWait: time.Hour}})
		group.SetLimits(nil, keysOf(100))
		_, err := callCosting(group.Get("a"), 100)
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cost, err := callCosting(group.Get("a"), 100)
			if err != nil {
				t.Error(err)
			}
			settle(t, cost, 1000)
		}()
		synctest.Wait()
		calls := keysOf(10)
		group.SetLimits(calls, nil)
		<-ended
		require.Equal(t, 9, calls.Get("a").Take(0).Remaining)
	})
}

func TestRefusedCallersAreToldMomentsAsFarApartAsTheyCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := joinCosts(nil, bucketOf(600), 0)
		_, err := callCosting(g, 600)
		require.NoError(t, err)
		for _, at := range []time.Duration{10 * time.Second, 20 * time.Second} {
			_, err := callCosting(g, 100)
			require.Equal(t, at, weir.RetryAfter(err))
		}
	})
}

func TestHoldsOfAGroupWithLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := weir.NewGroup[string]("tenants", weir.GroupConfig{})
		calls, costs := keysOf(10), keysOf(1000)
		group.SetLimits(calls, costs)
		group.Get("a").Hold(10 * time.Second)
		require.ErrorIs(t, group.Get("a").Run(bg(), succeed), limiter.ErrLimited)
		require.False(t, calls.Get("a").Take(1).OK)
		require.False(t, costs.Get("a").Take(1).OK)
		require.NoError(t, group.Get("b").Run(bg(), succeed))
		for v := range group.Views {
			v.(interface{ Hold(d time.Duration) }).Hold(time.Second)
		}
		require.False(t, calls.Get("c").Take(1).OK)
		require.False(t, costs.Get("c").Take(1).OK)
		time.Sleep(11 * time.Second)
		require.NoError(t, group.Get("a").Run(bg(), succeed))
	})
}

func TestAKeyWithoutRoomInTheLimitsOfAGroup(t *testing.T) {
	group := weir.NewGroup[string]("tenants", weir.GroupConfig{})
	group.SetLimits(nil, limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(600), MaxKeys: 1}))
	_, err := callCosting(group.Get("a"), 10)
	require.NoError(t, err)
	_, err = callCosting(group.Get("b"), 10)
	limited, ok := errors.AsType[*limiter.LimitedError](err)
	require.True(t, ok)
	require.Equal(t, []any{limiter.NoRoom, 1}, []any{limited.Reason, limited.MaxKeys})
}

// In the end each key has paid the costs that were settled and the estimates that were not, however
// often and from wherever Settle was called, while the config changes.
func TestCostsUnderLoad(t *testing.T) {
	const workers, callsEach = 8, 2000
	much := math.MaxInt32
	costs := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, 1000*time.Hour), Burst: much})
	shared := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, 1000*time.Hour), Burst: much})
	group := weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 8})
	group.SetLimits(nil, costs)
	inner := joinCosts(nil, shared, 0)
	var charged [4]atomic.Int64
	var total atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for range callsEach {
				key, estimate, actual := rnd.IntN(4), 1+rnd.IntN(100), rnd.IntN(200)
				ctx, cost := weir.WithCost(bg(), estimate)
				if group.Get(key).Run(ctx, func(ctx context.Context) error { return inner.Run(ctx, succeed) }) != nil {
					t.Error("refused")
				}
				switch rnd.IntN(4) {
				case 0:
					actual = estimate
				case 1:
					go func() { settle(t, cost, actual) }()
					settle(t, cost, actual)
				default:
					settle(t, cost, actual)
				}
				charged[key].Add(int64(actual))
				total.Add(int64(actual))
				if rnd.IntN(100) == 0 {
					if err := group.Reconfigure(weir.GroupConfig{MaxKeys: 8, Gate: weir.Config{MaxConcurrent: 100 + rnd.IntN(100)}}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		for key := range charged {
			if int64(much-costs.Get(key).Take(0).Remaining) != charged[key].Load() {
				return false
			}
		}
		return int64(much-shared.Take(0).Remaining) == total.Load()
	}, 5*time.Second, time.Millisecond)
}

// costEvent is a call that a gate has allowed.
type costEvent struct {
	at, settled      time.Duration
	estimate, actual int
}

// In any span from one call to another, what is used is at most the burst, what comes back in the
// span, and what the calls in flight at its end have used beyond their estimates. Calls wait for
// costs, calls and slots, and some fail.
func TestCostsOfAGateInAnySpan(t *testing.T) {
	checked, debts := 0, 0
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		synctest.Test(t, func(t *testing.T) {
			burst, perSecond := 50+rnd.IntN(500), 20+rnd.IntN(200)
			costs := limiter.GroupConfig[string]{Rate: limiter.PerSecond(float64(perSecond)), Burst: burst}
			config := weir.GroupConfig{Gate: weir.Config{Rate: limiter.Unlimited()}}
			if rnd.IntN(2) == 0 {
				config.Gate.MaxWait = time.Duration(rnd.IntN(20)) * time.Second
				config.Gate.MaxConcurrent = 1 + rnd.IntN(5)
			}
			group := weir.NewGroup[string]("tenants", config)
			group.SetLimits(keysOf(1+rnd.IntN(2000)), limiter.NewGroup(costs))
			began := time.Now()
			var mu sync.Mutex
			var events []*costEvent
			var wg sync.WaitGroup
			for range 150 {
				e := &costEvent{estimate: 1 + rnd.IntN(burst), actual: rnd.IntN(2 * burst)}
				takes, fails := time.Duration(rnd.IntN(3000))*time.Millisecond, rnd.IntN(5) == 0
				wg.Go(func() {
					ctx, cost := weir.WithCost(bg(), e.estimate)
					_ = group.Get("a").Run(ctx, func(context.Context) error {
						mu.Lock()
						e.at = time.Since(began)
						events = append(events, e)
						mu.Unlock()
						time.Sleep(takes)
						settle(t, cost, e.actual)
						e.settled = time.Since(began)
						if fails {
							return errDown
						}
						return nil
					})
				})
				time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			}
			wg.Wait()
			for i, from := range events {
				used := 0
				for j, to := range events[i:] {
					used += to.actual
					over := 0
					for _, e := range events[:i+j+1] {
						if e.settled >= to.at {
							over += max(e.actual-e.estimate, 0)
						}
					}
					allowed := float64(burst) + float64(perSecond)*(to.at-from.at).Seconds() + float64(over)
					if float64(used) > allowed+1e-3 {
						t.Fatalf("seed %d: %d used from %v to %v, %.1f allowed", seed, used, from.at, to.at, allowed)
					}
					checked++
				}
				if from.actual > from.estimate {
					debts++
				}
			}
		})
	}
	require.Greater(t, checked, 100_000)
	require.Greater(t, debts, 1000)
}
