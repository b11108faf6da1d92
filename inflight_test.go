package weir_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
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
		defer permit.Record(breaker.Failure)
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
			permit.Record(breaker.Ignored)
			permit.Record(breaker.Ignored)
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
				before, counted := availableTokens(g), g.Admissions()
				for form, call := range callForms {
					err := call(bg(), g, func(context.Context) error { t.Errorf("%s, %s: the call was made", kind, form); return nil })
					requireFull(t, err, kind)
				}
				require.InDelta(t, before, availableTokens(g), 0.5, "%s: the token is given back", kind)
				now := g.Admissions()
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
		_, err := g.Allow(bg())
		require.NoError(t, err, kind)
		require.Eventually(t, func() bool {
			runtime.GC()
			return g.Run(bg(), succeed) == nil
		}, 30*time.Second, time.Millisecond, kind)

		permit, err := g.Allow(bg())
		require.NoError(t, err, kind)
		for range 3 {
			runtime.GC()
			time.Sleep(time.Millisecond) // for cleanups
		}
		require.Equal(t, 1, callsInFlight(g), "%s: the permit is in use", kind)
		require.True(t, permit.Record(breaker.Success), kind)
		runtime.GC()
		require.NoError(t, g.Run(bg(), succeed), kind)
		require.Zero(t, callsInFlight(g), kind)
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
		permit.Record(breaker.Success)
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
	require.Zero(t, g.Admissions().Allowed)
}

// An open breaker refuses a call before slots are checked.
func TestAnOpenBreakerRefusesBeforeTheSlots(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := weir.New("g", c)
		require.NoError(t, g.Run(bg(), func(context.Context) error {
			g.Breaker().Force(breaker.ForcedOpen)
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
			return nil
		}))
		require.Zero(t, g.Admissions().Refused)
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
				permit.Record(breaker.Success)
				require.Equal(t, 1, slots.InFlight())
				return nil
			}))
			require.Zero(t, slots.InFlight())
			require.EqualValues(t, 3, g.Admissions().Allowed)
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
	}
	taken := weir.New("g", weir.Config{MaxConcurrent: 1})
	permit, err := taken.Allow(ctx)
	require.NoError(t, err)
	synctest.Test(t, func(*testing.T) {
		// in which no time passes, so that all refusals share an error
		_ = taken.Run(ctx, succeed)
		require.Zero(t, testing.AllocsPerRun(1000, func() { _ = taken.Run(ctx, succeed) }), "refused")
	})
	permit.Record(breaker.Success)
}

func TestTheHooksOfSlotsAreSet(t *testing.T) {
	_, ok := gatehook.InFlight.(gatehook.Slots[inflight.Limiter, breaker.Outcome])
	require.True(t, ok)
	require.False(t, gatehook.IsBusy(nil))
	g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1}}).Get(1)
	require.False(t, gatehook.IsBusy(g))
	require.NoError(t, g.Run(bg(), func(context.Context) error {
		require.True(t, gatehook.IsBusy(g))
		return nil
	}))
}
