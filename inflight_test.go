package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// callsInFlight returns the calls in flight of a gate or a group, or -1 if it has no bound.
func callsInFlight(s stat.Source) int {
	calls := -1
	for series, v := range s.Observe {
		if series.Instrument.Name == "weir.inflight.call.active" {
			calls = int(v)
		}
	}
	return calls
}

// functionEndings are the ways in which the function of a call ends.
var functionEndings = map[string]func(cancel func()) error{
	"success":   func(func()) error { return nil },
	"an error":  func(func()) error { return errDown },
	"a panic":   func(func()) error { panic("boom") },
	"Goexit":    func(func()) error { runtime.Goexit(); return nil },
	"cancelled": func(cancel func()) error { cancel(); return context.Canceled },
}

// callForms are all ways to make a call. Each returns the error of the gate.
var callForms = map[string]func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error{
	"Run": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error { return g.Run(ctx, fn) },
	"Do": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		_, err := weir.Do(ctx, g, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
		return err
	},
	"DoOr": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		_, err := weir.DoOr(ctx, g, func(ctx context.Context) (int, error) { return 1, fn(ctx) },
			func(_ context.Context, err error) (int, error) { return 0, err })
		return err
	},
	"DoResult": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		_, err := weir.DoResult(ctx, g, func(ctx context.Context) (int, error) { return 1, fn(ctx) },
			func(_ int, err error) breaker.Outcome {
				if err != nil {
					return breaker.Failure
				}
				return breaker.Success
			})
		return err
	},
	"Permit.Done": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		permit, err := g.Allow(ctx)
		if err != nil {
			return err
		}
		defer permit.Record(bg(), nil, breaker.Failure)
		err = fn(ctx)
		permit.Done(ctx, err)
		return err
	},
	"Permit.Run": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		permit, err := g.Allow(ctx)
		if err != nil {
			return err
		}
		return permit.Run(ctx, fn)
	},
	"Permit.Record, not made": func(ctx context.Context, g *weir.Gate, fn func(context.Context) error) error {
		permit, refund, err := g.Reserve(ctx)
		if err != nil {
			return err
		}
		defer func() {
			permit.Record(bg(), nil, breaker.Ignored)
			permit.Record(bg(), nil, breaker.Ignored)
			refund()
		}()
		return fn(ctx)
	},
}

// In every gate with slots, every form of call takes a slot, and returns it however it ends.
func TestEverySlotComesBack(t *testing.T) {
	for kind, g := range everyGate() {
		if callsInFlight(g) < 0 {
			continue
		}
		for form, call := range callForms {
			for ending, end := range functionEndings {
				ctx, cancel := context.WithCancel(t.Context())
				during := -1
				done := make(chan struct{})
				go func() { // Goexit ends it
					defer close(done)
					defer func() { _ = recover() }()
					_ = call(ctx, g, func(context.Context) error {
						during = callsInFlight(g)
						return end(cancel)
					})
				}()
				<-done
				cancel()
				require.Equal(t, 1, during, "%s, %s, %s: during the call", kind, form, ending)
				require.Zero(t, callsInFlight(g), "%s, %s, %s", kind, form, ending)
			}
			g.Breaker().Reset()
		}
	}
}

// A second call finds the only slot occupied.
func TestACallWithoutASlotIsRefusedAndHasTakenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// in which no time passes, so that no bucket is filled meanwhile
		for kind, g := range everyGate() {
			if callsInFlight(g) < 0 || strings.Contains(kind, "time to wait") {
				continue
			}
			require.NoError(t, g.Run(bg(), func(context.Context) error {
				before, counted := availableTokens(g), g.Stats()
				for form, call := range callForms {
					err := call(bg(), g, func(context.Context) error { t.Errorf("%s, %s: the call was made", kind, form); return nil })
					requireFull(t, err, kind)
				}
				require.InDelta(t, before, availableTokens(g), 0.5, "%s: the token is given back", kind)
				now := g.Stats()
				require.Equal(t, counted.Refused+int64(len(callForms)), now.Refused, kind)
				require.Equal(t, counted.Allowed, now.Allowed, kind)
				return nil
			}), kind)
			require.Zero(t, callsInFlight(g), kind)
		}
	})
}

// availableTokens returns what the metrics of a gate say about its limiter.
func availableTokens(g *weir.Gate) float64 {
	values, _ := readMetrics(g)
	return values["weir.limiter.available"]
}

// requireFull fails unless err says that a bound of one call in flight was reached.
func requireFull(t *testing.T, err error, kind string) {
	t.Helper()
	require.ErrorIs(t, err, weir.ErrRefused, kind)
	require.ErrorIs(t, err, inflight.ErrFull, kind)
	var refused *inflight.FullError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, []string{"g", "hosts", "hosts, of all keys without room: MaxKeys is 2", "in flight"}, refused.Name, kind)
	require.Equal(t, 1, refused.Limit, kind)
	wait := weir.RetryAfter(err)
	require.True(t, wait >= time.Millisecond && wait <= time.Second, "%s: %v", kind, wait)
}

// A permit that nothing refers to any more is found by the garbage collector.
func TestTheSlotOfAForgottenPermitComesBack(t *testing.T) {
	for kind, g := range everyGate() {
		if callsInFlight(g) < 0 {
			continue
		}
		requireForgottenSlotBack := func() {
			_, err := g.Allow(bg())
			require.NoError(t, err, kind)
			require.Eventually(t, func() bool {
				runtime.GC()
				return g.Run(bg(), succeed) == nil
			}, time.Minute, time.Millisecond, kind)
		}
		requireForgottenSlotBack()

		permit, err := g.Allow(bg())
		require.NoError(t, err, kind)
		for range 3 {
			runtime.GC()
			time.Sleep(time.Millisecond) // for cleanups
		}
		require.Equal(t, 1, callsInFlight(g), "%s: the permit is in use", kind)
		require.True(t, permit.Record(bg(), nil, breaker.Success), kind)
		runtime.GC()
		require.NoError(t, g.Run(bg(), succeed), kind)
		require.Zero(t, callsInFlight(g), kind)

		requireForgottenSlotBack() // also if a used permit is still referred to
		runtime.KeepAlive(&permit)
	}
}

// If the breaker refuses a call that has its slot already, the call gives the slot back.
func TestABreakerThatRefusesLateReturnsTheSlot(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxConcurrent, c.Breaker = 5, breaker.Config{Probes: 1, Cooldown: time.Nanosecond}
		g := weir.New("g", c)
		g.Breaker().OpenFor(0)
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
		require.Equal(t, 1, callsInFlight(g))
		permit.Record(bg(), nil, breaker.Success)
		require.Zero(t, callsInFlight(g))
	})
}

// openingLimiter is a limiter that opens a breaker whenever a token is taken.
type openingLimiter struct {
	limiter limiter.Limiter
	breaker *breaker.Breaker
	last    *limiter.Reservation
}

func (l *openingLimiter) Take(n int) limiter.Result {
	l.breaker.OpenFor(time.Hour)
	l.last = limiter.Reserve(l.limiter, n)
	return l.last.Result
}

func (l *openingLimiter) Refund(_ time.Time, n int) { l.last.Refund(n) }

func TestABreakerThatOpensMeanwhileReturnsTheSlot(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 2})
	g := weir.Join("g", weir.Parts{Breaker: b, Limiter: &openingLimiter{limiter: bucket, breaker: b}, InFlight: inflight.New(inflight.Config{Limit: 1})})
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Zero(t, callsInFlight(g))
	require.Equal(t, 2, bucket.Take(0).Remaining)
	require.Zero(t, g.Stats().Allowed)
}

// An open breaker refuses a call before slots are checked.
func TestAnOpenBreakerRefusesBeforeTheSlots(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := weir.New("g", c)
		require.NoError(t, g.Run(bg(), func(context.Context) error {
			g.Breaker().Force(breaker.ForcedOpen, "")
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
			return nil
		}))
		require.Zero(t, g.Stats().Refused)
	})
}

// In shadow mode a call is made even without a slot, and then releases no slot when it ends.
func TestSlotsInShadowMode(t *testing.T) {
	slots := inflight.New(inflight.Config{Limit: 1, Name: "in flight", Shadow: true})
	for _, maxWait := range []time.Duration{0, time.Second} {
		for _, l := range []limiter.Limiter{nil, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})} {
			g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: l, InFlight: slots, MaxWait: maxWait})
			require.NoError(t, g.Run(bg(), func(context.Context) error {
				require.NoError(t, g.Run(bg(), succeed))
				permit, err := g.Allow(bg())
				require.NoError(t, err)
				permit.Record(bg(), nil, breaker.Success)
				require.Equal(t, 1, slots.InFlight())
				return nil
			}))
			require.Zero(t, slots.InFlight())
			require.EqualValues(t, 3, g.Stats().Allowed)
		}
	}
	require.EqualValues(t, 8, slots.Stats().Shadowed)
}

func TestCallsWithASlotAllocateNothing(t *testing.T) {
	free := weir.New("g", weir.Config{MaxConcurrent: 2})
	both := weir.New("g", weir.Config{MaxConcurrent: 2, Rate: limiter.PerSecond(1e9), Burst: 1 << 30})
	key := hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 2}}).Get("a")
	adaptive := weir.New("g", weir.Config{Adaptive: true})
	ctx := bg()
	for name, g := range map[string]*weir.Gate{"slots": free, "slots and a rate": both, "a key": key, "adaptive": adaptive} {
		require.Zero(t, testing.AllocsPerRun(1000, func() { _ = g.Run(ctx, succeed) }), name)
		require.Less(t, testing.AllocsPerRun(1000, func() { // as weirhttp does
			permit, err := g.Allow(ctx)
			permit.Done(ctx, err)
		}), 2.0, "%s: with the race detector, a pool loses a quarter of the leases", name)
	}
	taken := weir.New("g", weir.Config{MaxConcurrent: 1})
	permit, err := taken.Allow(ctx)
	require.NoError(t, err)
	synctest.Test(t, func(*testing.T) {
		// in which no time passes, so that all refusals share an error
		_ = taken.Run(ctx, succeed)
		require.Zero(t, testing.AllocsPerRun(1000, func() { _ = taken.Run(ctx, succeed) }), "refused")
	})
	permit.Record(bg(), nil, breaker.Success)
}

func TestEachAllowedCallIsCountedOnce(t *testing.T) {
	const calls = 200 // the breaker samples the first 64, which take no shortcut
	for name, c := range map[string]weir.Config{
		"slots": {MaxConcurrent: 2}, "slots and a rate": {MaxConcurrent: 2, Rate: limiter.PerSecond(1e9)},
		"rate": {Rate: limiter.PerSecond(1e9)}, "adaptive": {Adaptive: true},
	} {
		g := weir.New("g", c)
		keys := hosts(weir.GroupConfig{Gate: c})
		for range calls {
			require.NoError(t, g.Run(bg(), succeed), name)
			require.NoError(t, keys.Get("a").Run(bg(), succeed), name)
			permit, err := keys.Get("b").Allow(bg())
			require.NoError(t, err, name)
			permit.Done(bg(), nil)
		}
		require.Equal(t, limiter.Stats{Allowed: calls}, g.Stats(), name)
		require.Equal(t, limiter.Stats{Allowed: 2 * calls}, keys.Stats(), name)
	}
	joined := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: inflight.New(inflight.Config{Limit: 2})})
	for range calls {
		require.NoError(t, joined.Run(bg(), succeed))
	}
	require.Equal(t, limiter.Stats{Allowed: calls}, joined.Stats())
	crowded := hosts(weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{MaxConcurrent: 2}})
	require.NoError(t, crowded.Get("a").Run(bg(), func(context.Context) error { // keeps its key
		for range calls {
			require.NoError(t, crowded.Get("without room").Run(bg(), succeed))
		}
		return nil
	}))
	require.Equal(t, limiter.Stats{Allowed: 1 + calls}, crowded.Stats())
}

// A group of breakers asks the gate of a member whether its calls hold slots.
func TestAGateIsBusyWhileItsCallsHoldSlots(t *testing.T) {
	g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1}}).Get(1)
	gate := breaker.Inside(friend.Key{}).Gate(g.Breaker())
	require.False(t, gate.IsBusy())
	require.NoError(t, g.Run(bg(), func(context.Context) error {
		require.True(t, gate.IsBusy())
		return nil
	}))
}

// withBothBounds runs a test in a bubble, with the config of a fixed bound of one call in flight,
// and with that of an adaptive one.
func withBothBounds(t *testing.T, test func(t *testing.T, c weir.Config)) {
	for _, adaptive := range []bool{false, true} {
		t.Run(fmt.Sprintf("adaptive=%t", adaptive), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, weir.Config{MaxConcurrent: 1, Adaptive: adaptive}) })
		})
	}
}

// occupiedGate returns a gate whose only slot is held until release is called.
func occupiedGate(t *testing.T, c weir.Config) (g *weir.Gate, release func()) {
	g = weir.New("g", c)
	permit, err := g.Allow(bg())
	require.NoError(t, err)
	return g, func() { permit.Record(bg(), nil, breaker.Success) }
}

func TestWaitersGetSlotsInOrderOfArrival(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, c)
		began := time.Now()
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				require.NoError(t, g.Run(t.Context(), func(context.Context) error {
					order = append(order, i)
					time.Sleep(time.Second)
					return nil
				}))
			})
			synctest.Wait()
		}
		release()
		wg.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 5}, g.Stats())
	})
}

// A call that has waited 4s for its token waits at most 6s more for its slot.
func TestMaxWaitIsOneBudgetForTokenAndSlot(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.Rate, c.Burst, c.MaxWait = limiter.Per(1, 4*time.Second), 1, 10*time.Second
		g := weir.New("g", c)
		hold := make(chan struct{})
		go func() { _ = g.Run(t.Context(), func(context.Context) error { <-hold; return nil }) }()
		synctest.Wait()
		began := time.Now()
		err := g.Run(t.Context(), succeed)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorIs(t, err, inflight.ErrFull)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `inflight limiter "g" had no slot within 6s (limit 1, MaxWait 10s)`)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "the token is given back")
		require.Equal(t, limiter.Stats{Allowed: 1, Refused: 1}, g.Stats())
		close(hold)
		synctest.Wait()
		require.Zero(t, callsInFlight(g))
	})
}

// Whatever ends a wait for a slot, the call takes nothing, and the slot is there for the next call.
func TestAWaitForASlotThatEndsTakesNothing(t *testing.T) {
	const rate = 3
	for name, end := range map[string]struct {
		do   func(g *weir.Gate, cancel func())
		want error
	}{
		"the caller cancels": {func(_ *weir.Gate, cancel func()) { cancel() }, context.Canceled},
		"the breaker opens":  {func(g *weir.Gate, _ func()) { g.Breaker().OpenFor(time.Hour) }, breaker.ErrOpen},
		"a long hold":        {func(g *weir.Gate, _ func()) { g.Hold(time.Hour) }, inflight.ErrFull},
		"MaxWait is over":    {func(*weir.Gate, func()) { time.Sleep(time.Minute) }, inflight.ErrFull},
	} {
		withBothBounds(t, func(t *testing.T, c weir.Config) {
			c.Rate, c.Burst, c.MaxWait = limiter.Per(1, time.Hour), rate, time.Minute
			g, release := occupiedGate(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- g.Run(ctx, func(context.Context) error { t.Errorf("%s: called", name); return nil }) }()
			synctest.Wait()
			require.Equal(t, rate-1, g.Limiter().Take(0).Remaining, "%s: a call that waits for a slot has no token", name)
			end.do(g, cancel)
			require.ErrorIs(t, <-got, end.want, name)
			g.Breaker().Reset()
			release()
			require.Zero(t, callsInFlight(g), name)
			if name != "a long hold" {
				require.Equal(t, rate-1, g.Limiter().Take(0).Remaining, "%s: the token is given back", name)
				require.NoError(t, g.Run(t.Context(), succeed), name)
			}
		})
	}
}

// A call that gets its slot during a hold gives it back, waits for the end of the hold and takes
// another.
func TestACallWithASlotWaitsOutAHold(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, withExactHold(c))
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			require.NoError(t, g.Run(t.Context(), succeed))
			require.Equal(t, 20*time.Second, time.Since(began))
		})
		synctest.Wait()
		g.Hold(20 * time.Second)
		time.Sleep(time.Second)
		release()
		synctest.Wait()
		require.Zero(t, callsInFlight(g), "no call holds a slot during a hold")
		wg.Wait()
	})
}

// A call that got its token waits for its slot no longer than the deadline of its context.
func TestAWaitForASlotEndsAtTheDeadline(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		c.MaxWait = time.Minute
		g, release := occupiedGate(t, c)
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := g.Run(ctx, succeed)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.EqualValues(t, 1, g.Stats().Refused)
	})
}

// If there is no slot for a call that cannot wait, the remote is not called. If a call waits and
// still gets no slot, the remote gets its token back.
func TestARemoteIsNotCalledWithoutASlot(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		for _, maxWait := range []time.Duration{0, time.Second} {
			remote, bucket := newRemote(10), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 9})
			g := weir.Join("g", weir.Parts{
				Breaker: breaker.New("b", breaker.Config{}), Limiter: bucket, Remote: remote, MaxWait: maxWait,
				InFlight: inflight.New(inflight.Config{Limit: 1, Adaptive: c.Adaptive}),
			})
			require.NoError(t, g.Run(t.Context(), func(context.Context) error {
				before, asked := remote.bucket.Take(0).Remaining, remote.asked.Load()
				err := g.Run(t.Context(), succeed)
				require.ErrorIs(t, err, inflight.ErrFull)
				require.ErrorContains(t, err, `inflight limiter "g" `)
				require.Equal(t, before, remote.bucket.Take(0).Remaining)
				require.True(t, maxWait > 0 || remote.asked.Load() == asked)
				require.Equal(t, 8, bucket.Take(0).Remaining, "the token is given back")
				return nil
			}))
		}
	})
}

// adaptiveGates returns gates with an adaptive bound, made in all ways in which a gate can be made.
func adaptiveGates() map[string]*weir.Gate {
	c := weir.Config{Adaptive: true}
	tokens := weir.Config{Adaptive: true, Rate: limiter.PerSecond(1e6)}
	waits := weir.Config{Adaptive: true, MaxWait: 10 * time.Millisecond}
	return map[string]*weir.Gate{
		"weir.Config":             weir.New("g", c),
		"weir.Config, a rate":     weir.New("g", tokens),
		"weir.Config, a MaxWait":  weir.New("g", waits),
		"weir.Parts":              weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: inflight.New(inflight.Config{Adaptive: true})}),
		"a key":                   hosts(weir.GroupConfig{Gate: c}).Get("a"),
		"a key without room":      gateWithoutRoom(c),
		"a key, a rate":           hosts(weir.GroupConfig{Gate: tokens}).Get("a"),
		"weir.Parts, a remote":    weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1e6), InFlight: inflight.New(inflight.Config{Adaptive: true})}),
		"a breaker that is timed": weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{SlowCall: time.Minute}}),
	}
}

// limitOf returns the bound on calls in flight in the metrics of a gate or a group.
func limitOf(g stat.Source) int {
	values, _ := readMetrics(g)
	return int(values["weir.inflight.limit"])
}

// service has servers that take 20 ms for a call, and a queue.
type service struct {
	servers chan struct{} // a value per idle server
	taken   int           // by removeServers
}

func newService(servers int) *service {
	s := &service{servers: make(chan struct{}, servers)}
	for range servers {
		s.servers <- struct{}{}
	}
	return s
}

// call waits for a server and for the server's answer. It gives up when ctx is done.
func (s *service) call(ctx context.Context) error {
	select {
	case <-s.servers:
	case <-ctx.Done():
		return ctx.Err()
	}
	time.Sleep(20 * time.Millisecond)
	s.servers <- struct{}{}
	return nil
}

// removeServers removes servers, and addServers adds them again.
func (s *service) removeServers(servers int) {
	for range servers {
		<-s.servers
	}
	s.taken += servers
}

func (s *service) addServers() {
	for ; s.taken > 0; s.taken-- {
		s.servers <- struct{}{}
	}
}

// result counts calls by how they ended.
type result struct{ good, failed, refused atomic.Int64 }

// makeLoad makes 250 calls per second for the given time, each with a deadline of a second, and
// waits for all of them to end.
func (s *service) makeLoad(g *weir.Gate, random *rand.Rand, d time.Duration) *result {
	r := new(result)
	var wg sync.WaitGroup
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(4*time.Millisecond)))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			switch err := g.Run(ctx, s.call); {
			case err == nil:
				r.good.Add(1)
			case weir.RetryAfter(err) > 0: // refused
				r.refused.Add(1)
			default:
				r.failed.Add(1)
			}
		})
	}
	wg.Wait()
	return r
}

// A service that can answer 500 calls per second gets 250. While only two of its ten servers are
// left, it can answer 100. During that time the gate refuses the calls beyond that, so hardly any
// call fails. Before and after, the gate refuses nothing. With WEIR_SOAK=true it takes twice as
// long.
func TestAnAdaptiveGateFollowsTheCapacityOfItsService(t *testing.T) {
	seconds := time.Duration(testenv.Repeat(20, 10))
	for name := range adaptiveGates() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s, random := adaptiveGates()[name], newService(10), rand.New(rand.NewPCG(1, 2))
				well := s.makeLoad(g, random, seconds*time.Second)
				require.Zero(t, well.failed.Load())
				require.Zero(t, well.refused.Load())

				s.removeServers(8)
				bad := s.makeLoad(g, random, seconds*time.Second)
				require.Greater(t, bad.good.Load(), int64(90*seconds), "of 100 per second")
				require.Greater(t, bad.refused.Load(), int64(100*seconds), "of 150 per second")
				require.Less(t, bad.failed.Load(), int64(100), "of 5,000")
				require.Zero(t, g.Breaker().Totals().Refused)

				s.addServers()
				s.makeLoad(g, random, 5*time.Second)
				well = s.makeLoad(g, random, seconds*time.Second)
				require.Zero(t, well.failed.Load())
				require.Zero(t, well.refused.Load())
				require.GreaterOrEqual(t, limitOf(g), 50)
			})
		})
	}
}

// A healthy service gets as many calls at once as its callers make.
func TestAnAdaptiveGateRefusesNothingWithoutEvidence(t *testing.T) {
	const calls = 1000
	for name := range adaptiveGates() {
		synctest.Test(t, func(t *testing.T) {
			g, s := adaptiveGates()[name], newService(calls)
			for range 3 {
				var refused atomic.Int64
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						if g.Run(t.Context(), s.call) != nil {
							refused.Add(1)
						}
					})
				}
				synctest.Wait()
				require.Equal(t, calls, callsInFlight(g), name)
				wg.Wait()
				require.Zero(t, refused.Load(), name)
			}
		})
	}
}

// The time that a call waits for its slot is no part of its duration. If it were, calls that wait
// after a hang would seem slow, and the bound would stay at one call.
func TestAWaitForASlotDoesNotCountAsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Adaptive: true, MaxWait: time.Minute, Breaker: breaker.Config{Force: breaker.ForcedClosed}})
		makeUsualCalls(t, g)
		for range 100 {
			_ = g.Run(t.Context(), slowCall(errDown))
		}
		require.Equal(t, 1, limitOf(g))
		began := time.Now()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if g.Run(t.Context(), newService(1).call) != nil {
					t.Error("refused")
				}
			})
		}
		wg.Wait()
		require.Less(t, time.Since(began), time.Second, "one after the other they would take 4 s")
	})
}

// slowCall makes a call that lasts a second, fifty times as long as usual.
func slowCall(err error) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(time.Second)
		return err
	}
}

// In every way to make a call, the bound gets the duration of the call, and the same outcome as the
// breaker.
func TestTheOutcomesOfCallsReachAnAdaptiveBound(t *testing.T) {
	const refusing, indifferent = 1, 50
	for ending, c := range map[string]struct {
		call func(context.Context) error
		want int
	}{
		"a slow success":   {slowCall(nil), refusing},
		"a late failure":   {slowCall(errDown), refusing},
		"a panic":          {func(ctx context.Context) error { _ = slowCall(nil)(ctx); panic("boom") }, refusing},
		"Goexit":           {func(ctx context.Context) error { _ = slowCall(nil)(ctx); runtime.Goexit(); return nil }, refusing},
		"an early failure": {fail, indifferent},
		"an early success": {succeed, indifferent},
		"a late refusal":   {slowCall(weir.ErrRefused), indifferent},
	} {
		for form, call := range callForms {
			want := c.want
			if form == "Permit.Record, not made" {
				want = indifferent // this form always records the outcome Ignored
			}
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{Force: breaker.ForcedClosed}})
				makeUsualCalls(t, g)
				for range 100 {
					done := make(chan struct{})
					go func() { // Goexit ends it
						defer close(done)
						defer func() { _ = recover() }()
						_ = call(t.Context(), g, c.call)
					}()
					<-done
				}
				require.Equal(t, want, limitOf(g), "%s, %s", ending, form)
			})
		}
	}
}

// makeUsualCalls makes calls of 20 ms, so that the gate learns how long calls take.
func makeUsualCalls(t *testing.T, g *weir.Gate) {
	for range 100 {
		require.NoError(t, g.Run(t.Context(), func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }))
	}
}

// The time that a call waits for its token says nothing about the service.
func TestAWaitForATokenDoesNotCountAsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Adaptive: true, Rate: limiter.PerSecond(1), Burst: 100, MaxWait: time.Minute})
		makeUsualCalls(t, g)
		began := time.Now()
		for range 100 {
			require.NoError(t, g.Run(t.Context(), succeed))
		}
		require.Greater(t, time.Since(began), 90*time.Second)
		require.Equal(t, 50, limitOf(g))
	})
}

// The bound of one key follows that key alone, and the metric of the group shows the lowest one.
func TestEachKeyHasItsOwnAdaptiveBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Adaptive: true}})
		for _, key := range []string{"slow", "quick"} {
			makeUsualCalls(t, g.Get(key))
		}
		for range 100 {
			_ = g.Get("slow").Run(t.Context(), slowCall(nil))
			_ = g.Get("quick").Run(t.Context(), succeed)
		}
		require.Equal(t, 1, limitOf(g.Get("slow")))
		require.Equal(t, 50, limitOf(g.Get("quick")))
		require.Equal(t, 1, limitOf(g))

		require.True(t, g.Forget("slow"))
		require.Equal(t, 50, limitOf(g.Get("slow")), "it learns again from the start")
		require.Equal(t, 50, limitOf(g))

		require.NoError(t, g.ReconfigureGates(weir.Config{Adaptive: true, MaxConcurrent: 3}))
		require.Equal(t, 3, limitOf(g.Get("slow")))
		require.Equal(t, 3, limitOf(g.Get("new")))
		require.NoError(t, g.ReconfigureGates(weir.Config{Adaptive: true}))
		require.Equal(t, 50, limitOf(g), "0 stands for the highest limit of package inflight")
	})
}

// makeSteadyLoad makes 150 calls per second for a time, and returns how many were refused.
func makeSteadyLoad(g *weir.Gate, random *rand.Rand, d time.Duration, call func(ctx context.Context, n int) error) (refused, failed int64) {
	var r result
	var wg sync.WaitGroup
	for end, n := time.Now().Add(d), 0; time.Now().Before(end); n++ {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second/150)))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			switch err := g.Run(ctx, func(ctx context.Context) error { return call(ctx, n) }); {
			case errors.Is(err, weir.ErrRefused):
				r.refused.Add(1)
			case err != nil:
				r.failed.Add(1)
			}
		})
	}
	wg.Wait()
	return r.refused.Load(), r.failed.Load()
}

// One host of three hangs, or is so slow that half of its calls are late. The other hosts are well,
// so nothing is congested.
func TestAnAdaptiveGateRefusesNothingForOneBadHost(t *testing.T) {
	for name, bad := range map[string]func(context.Context) error{
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"slow":  newService(10).slowCall,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", weir.Config{Adaptive: true})
			good, down := newService(20), false
			call := func(ctx context.Context, n int) error {
				if down && n%3 == 0 {
					return bad(ctx)
				}
				return good.call(ctx)
			}
			random := rand.New(rand.NewPCG(1, 2))
			makeSteadyLoad(g, random, 10*time.Second, call)
			down = true
			refused, failed := makeSteadyLoad(g, random, time.Minute, call)
			require.Zero(t, refused, name)
			require.Greater(t, failed, int64(1000), "%s: of 9,000", name)
			require.Empty(t, g.Explain())
		})
	}
}

// slowCall lasts 100 to 1,900 ms, or until ctx is done.
func (*service) slowCall(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(100+rand.IntN(1800)) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errQueueFull = errors.New("queue is full")

// A service of ten servers loses four, and can hold forty more calls. The classifier says that the
// errors of a full queue are the service's word for an overload.
func TestAnAdaptiveGateLearnsFromTheWordOfTheService(t *testing.T) {
	for _, said := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{Classify: func(err error) breaker.Outcome {
				if said && errors.Is(err, errQueueFull) {
					return breaker.Overloaded
				}
				return breaker.DefaultClassify(err)
			}}})
			s := newService(10)
			var inside atomic.Int64
			call := func(ctx context.Context, _ int) error {
				defer inside.Add(-1)
				if inside.Add(1) > 46 {
					return errQueueFull
				}
				select {
				case <-s.servers:
				case <-ctx.Done():
					return ctx.Err()
				}
				time.Sleep(50 * time.Millisecond)
				s.servers <- struct{}{}
				return nil
			}
			random := rand.New(rand.NewPCG(1, 2))
			makeSteadyLoad(g, random, 20*time.Second, call)
			s.removeServers(4) // so it takes 120 calls per second, of 150
			makeSteadyLoad(g, random, 5*time.Second, call)
			_, failed := makeSteadyLoad(g, random, 30*time.Second, call)
			if !said {
				require.Greater(t, failed, int64(600), "of 900 that are too many")
				return
			}
			require.Less(t, failed, int64(200), "of 900 that are too many")
			require.Contains(t, g.Explain(), "the service says that it is overloaded")
			values, _ := readMetrics(g)
			require.Greater(t, values["weir.inflight.bounding.time"], 10.0)
			s.addServers()
			makeSteadyLoad(g, random, 5*time.Second, call)
			refused, _ := makeSteadyLoad(g, random, 10*time.Second, call)
			require.Zero(t, refused)
			require.Empty(t, g.Explain())
		})
	}
}

// The garbage collector must not release the slot of a permit that was used, since another call may
// have it.
func TestAUsedPermitIsNotReleasedAgain(t *testing.T) {
	g := weir.New("g", weir.Config{MaxConcurrent: 1})
	for i := range 100 {
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		if i%2 == 0 {
			require.True(t, permit.Record(bg(), nil, breaker.Success))
		} else {
			require.True(t, permit.Done(bg(), nil))
		}
	}
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond) // cleanups run in a goroutine of the runtime
	}
	permit, err := g.Allow(bg())
	require.NoError(t, err)
	_, err = g.Allow(bg())
	require.ErrorIs(t, err, weir.ErrRefused)
	permit.Record(bg(), nil, breaker.Success)
	require.NoError(t, g.Run(bg(), succeed))
	require.Zero(t, callsInFlight(g))
}

// A call that a limit refuses is not in flight, also if the breaker has let it pass before: it does
// not keep its key.
func TestACallThatALimitRefusesKeepsNoKey(t *testing.T) {
	for name, c := range map[string]weir.Config{
		"rate":          {Rate: limiter.Per(1, time.Hour), Burst: 70},
		"bound":         {MaxConcurrent: 1},
		"rate and slot": {Rate: limiter.Per(1, time.Hour), Burst: 80, MaxConcurrent: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			group := hosts(weir.GroupConfig{Gate: c, MaxKeys: 1, MaxSeries: breaker.Off})
			gate := group.Get("a")
			for range 69 { // until the breaker samples no calls
				require.NoError(t, gate.Run(bg(), succeed))
			}
			require.NoError(t, gate.Run(bg(), func(context.Context) error {
				for range 3 {
					require.ErrorIs(t, gate.Run(bg(), succeed), weir.ErrRefused)
				}
				return nil
			}))
			time.Sleep(time.Minute)
			group.Get("b")
			values, _ := readMetrics(group)
			require.Zero(t, values["weir.breaker.group.unguarded"], name)
		})
	}
}

func TestAPermitIsUsedOnce(t *testing.T) {
	for _, c := range []weir.Config{{}, {MaxConcurrent: 1}, {RefuseHopeless: true}} {
		g := weir.New("g", c)
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		require.True(t, permit.Record(bg(), errDown, breaker.Failure))
		require.False(t, permit.Record(bg(), nil, breaker.Success))
		require.False(t, permit.Done(bg(), nil))
		require.False(t, permit.Record(bg(), nil, breaker.Success))
		require.Panics(t, func() { _ = permit.Run(bg(), succeed) })
		require.EqualValues(t, 1, g.Totals().Calls())
		require.Panics(t, func() { _ = new(weir.Permit).Run(bg(), succeed) })
		require.False(t, new(weir.Permit).Record(bg(), nil, breaker.Success))
	}
}

// A callback of the breaker may make a call of its own, so the slot is free by then.
func TestTheSlotIsFreeWhenTheBreakerChanges(t *testing.T) {
	down := func(context.Context) error { return errDown }
	allow := func(end func(*weir.Permit)) func(*weir.Gate) {
		return func(g *weir.Gate) {
			permit, err := g.Allow(bg())
			require.NoError(t, err)
			end(&permit)
		}
	}
	for name, fail := range map[string]func(*weir.Gate){
		"Run": func(g *weir.Gate) { _ = g.Run(bg(), down) },
		"a panic": func(g *weir.Gate) {
			require.Panics(t, func() { _ = g.Run(bg(), func(context.Context) error { panic("down") }) })
		},
		"DoResult": func(g *weir.Gate) {
			_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 503, nil }, byStatus)
		},
		"Record":          allow(func(p *weir.Permit) { p.Record(bg(), nil, breaker.Failure) }),
		"Done":            allow(func(p *weir.Permit) { p.Done(bg(), errDown) }),
		"Record an error": allow(func(p *weir.Permit) { p.Record(bg(), errDown, breaker.Failure) }),
	} {
		withBothBounds(t, func(t *testing.T, c weir.Config) {
			var g *weir.Gate
			var inFlight []int
			c.Breaker = breaker.Config{ConsecutiveFailures: 1, OnChange: func(breaker.Change) { inFlight = append(inFlight, callsInFlight(g)) }}
			g = weir.New("g", c)
			fail(g)
			require.Equal(t, []int{0}, inFlight, name)
		})
	}
}

func TestAPanicOfACallWithASlotIsShownAsOne(t *testing.T) {
	kinds := map[string]string{}
	for name, c := range map[string]weir.Config{"a slot": {MaxConcurrent: 1}, "no slot": {}} {
		c.Breaker = breaker.Config{ConsecutiveFailures: 1}
		g := weir.New("g", c)
		require.Panics(t, func() { _ = g.Run(bg(), func(context.Context) error { panic("down") }) })
		open, ok := errors.AsType[*breaker.OpenError](g.Run(bg(), succeed))
		require.True(t, ok)
		require.Len(t, open.LastFailures, 1)
		kinds[name] = open.LastFailures[0].Kind
	}
	require.Equal(t, kinds["no slot"], kinds["a slot"])
	require.Contains(t, kinds["a slot"], "panic")
}

// The caller of the context decides the place in a queue that gates share.
func TestACallWaitsAsTheCallerOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: slots, MaxWait: time.Hour})
		held, err := slots.TryAcquire(t.Context())
		require.NoError(t, err)
		call := func(p inflight.Priority) <-chan error {
			answer := make(chan error, 1)
			go func() {
				ctx := inflight.WithCaller(t.Context(), inflight.Caller{Priority: p})
				answer <- g.Run(ctx, func(context.Context) error { return nil })
			}()
			synctest.Wait()
			return answer
		}
		report, payment := call(inflight.Background), call(inflight.Critical)
		require.ErrorIs(t, <-report, inflight.ErrFull)
		held.Done(t.Context(), nil)
		require.NoError(t, <-payment)
	})
}

// A refusal tells the caller of the context when its turn would come.
func TestARefusalIsForTheCallerOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Limit: 1})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: slots})
		for range 20 {
			go func() {
				_ = slots.Run(t.Context(), func(context.Context) error {
					time.Sleep(10 * time.Millisecond)
					return nil
				})
			}()
		}
		time.Sleep(105 * time.Millisecond) // some have a slot, and the others wait
		until := func(p inflight.Priority) time.Time {
			var full *inflight.FullError
			require.ErrorAs(t, g.Run(inflight.WithCaller(t.Context(), inflight.Caller{Priority: p}), succeed), &full)
			return full.Until
		}
		require.True(t, until(inflight.Critical).Before(until(inflight.Normal)))
		time.Sleep(time.Second)
	})
}
