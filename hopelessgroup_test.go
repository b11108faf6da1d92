package weir_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestAHopelessCallIsNotAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{Cooldown: 2 * time.Second, Probes: 1}})
		learnLatency(t, g)
		g.Breaker().OpenFor(2 * time.Second)
		require.ErrorIs(t, callWithDeadline(g, time.Millisecond, 0), breaker.ErrOpen, "the breaker refuses first")
		time.Sleep(2 * time.Second)
		for range 3 {
			var hopeless *weir.HopelessError
			require.ErrorAs(t, callWithDeadline(g, time.Millisecond, 0), &hopeless)
			time.Sleep(time.Second / 3)
		}
		require.Equal(t, breaker.HalfOpen, g.Breaker().State())
		require.NoError(t, callWithDeadline(g, time.Second, 50*time.Millisecond), "the probe was not taken")
		require.Equal(t, breaker.Recovering, g.Breaker().State())
	})
}

func TestFailuresDoNotMakeFastSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{FailureRate: breaker.Off}})
		learnLatency(t, g)
		for range 300 {
			_ = g.Run(bg(), fail) // at once
			require.Panics(t, func() { _ = g.Run(bg(), func(context.Context) error { panic("x") }) })
		}
		time.Sleep(time.Second)
		makeTestCall(t, g)
		require.ErrorIs(t, callWithDeadline(g, 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, callWithDeadline(g, 60*time.Millisecond, 50*time.Millisecond))
	})
}

// deadlinePassed is a context whose deadline has passed, but whose Done channel is not closed yet.
type deadlinePassed struct{ context.Context }

func (deadlinePassed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

func TestADeadlineThatHasPassedIsHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true})
		require.NoError(t, g.Run(deadlinePassed{bg()}, succeed), "nothing is known yet")
		learnLatency(t, g)
		makeTestCall(t, g)
		var hopeless *weir.HopelessError
		require.ErrorAs(t, g.Run(deadlinePassed{bg()}, succeed), &hopeless)
		require.Zero(t, hopeless.Left)
	})
}

func TestEachKeyHasItsOwnEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{RefuseHopeless: true}
		g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 100})
		learnLatency(t, g.Get("slow"))
		makeTestCall(t, g.Get("slow"))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, callWithDeadline(g.Get("other"), 10*time.Millisecond, 0))
		metrics, _ := readMetrics(g)
		require.Equal(t, 1.0, metrics["weir.gate.hopeless_calls"])

		require.NoError(t, g.Reconfigure(c))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, g.Reconfigure(weir.Config{}))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0))
		require.NoError(t, g.Reconfigure(c))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), "the estimate starts again")
		learnLatency(t, g.Get("slow"))
		makeTestCall(t, g.Get("slow"))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.True(t, g.Forget("slow"))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), "the key starts again")
	})
}

func TestAKeyWithoutRoomRefusesNoHopelessCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateWithoutRoom(weir.Config{RefuseHopeless: true, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		learnLatency(t, g)
		for range 5 {
			require.NoError(t, callWithDeadline(g, time.Millisecond, 0))
		}
	})
}

// TestCallsWithDeadlinesLoseNothing makes calls of all kinds at once, and counts.
func TestCallsWithDeadlinesLoseNothing(t *testing.T) {
	g := weir.New("g", weir.Config{
		RefuseHopeless: true, MaxConcurrent: 4, MaxWait: 2 * time.Millisecond, Rate: limiter.PerSecond(1e6),
		Breaker: breaker.Config{FailureRate: breaker.Off, CountDeadlines: true},
	})
	var called, hopeless, others int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 400 {
				ctx, cancel := context.WithTimeout(bg(), time.Duration(1+r.IntN(4))*time.Millisecond/4)
				n := int64(0)
				err := g.Run(ctx, func(ctx context.Context) error { n = 1; return answersAfter(600 * time.Microsecond)(ctx) })
				cancel()
				mu.Lock()
				called += n
				if _, ok := err.(*weir.HopelessError); ok { //nolint:errorlint // Run returns it as it is
					hopeless++
				} else if n == 0 {
					others++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d called, %d hopeless, %d others", called, hopeless, others)
	require.Equal(t, int64(3200), called+hopeless+others)
	metrics, _ := readMetrics(g)
	require.Equal(t, float64(hopeless), metrics["weir.gate.hopeless_calls"])
	require.Zero(t, metrics["weir.inflight.call.active"], "every slot was given back")
	require.Equal(t, called, g.Totals().Successes+g.Totals().Failures+g.Totals().Ignored)
	require.Equal(t, called, g.Admissions().Allowed+g.Admissions().Waited)
}
