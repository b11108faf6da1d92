package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
)

// Gates are package variables that are used with the real clock, then in two bubbles, each with a
// clock that begins in the year 2000, and then with the real clock again.
func TestAGateStartsAgainWithEachClock(t *testing.T) {
	config := weir.Config{Rate: limiter.PerMinute(1), Burst: 5, MaxConcurrent: 3, MaxWait: time.Second}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	for name, g := range map[string]*weir.Gate{"gate": weir.New("g", config), "key": group.Get("k")} {
		allowed := func() (n int) {
			for ; g.Run(bg(), succeed) == nil; n++ {
			}
			return n
		}
		inBubble := func(t *testing.T) {
			require.Equal(t, 5, allowed(), "%s: in a bubble", name)
			time.Sleep(time.Hour)
			require.Equal(t, 5, allowed(), "%s: after an hour in the bubble", name)
			g.Hold(time.Hour)
			require.Zero(t, allowed(), name)
			time.Sleep(24 * time.Hour)
			require.Equal(t, 5, allowed(), "%s: after a day in the bubble", name)
			g.Hold(time.Hour)
		}
		require.Equal(t, 5, allowed(), name)
		g.Hold(24 * time.Hour)
		require.Zero(t, allowed(), name)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		require.Equal(t, 5, allowed(), "%s: with the real clock", name)
	}
}

// The same for the breakers of gates, of groups and of parts. A call that began in one clock ends
// in the next one.
func TestTheBreakerOfAGateStartsAgainWithEachClock(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, Probes: 1, Cooldown: time.Second, SlowCall: time.Second, Latency: true}
	config := weir.Config{MaxConcurrent: 3, Breaker: c}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	parts := weir.Parts{Breaker: breaker.New("p", c), Throttle: throttle.New("t", throttle.Config{})}
	for name, g := range map[string]*weir.Gate{
		"gate": weir.New("g", config), "key": group.Get("k"), "parts": weir.Join("p", parts),
	} {
		var begun breaker.Permit
		untilOpen := func() (n int) {
			for ; n < 100 && !g.Tripped(); n++ {
				_ = g.Run(bg(), fail)
			}
			return n
		}
		inBubble := func(t *testing.T) {
			begun.Done(bg(), nil) // a permit of the clock before, or the zero permit
			require.False(t, g.Tripped(), name)
			require.NoError(t, g.Run(bg(), succeed), name)
			require.Zero(t, g.Breaker().Counts().Slow, name)
			require.Less(t, untilOpen(), 40, name)
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen, name)
			require.LessOrEqual(t, weir.RetryAfter(g.Run(bg(), succeed)), 2*time.Second, name)
			time.Sleep(time.Hour)
			require.NoError(t, g.Run(bg(), succeed), name)
			require.Equal(t, breaker.Closed, g.Breaker().State(), name)
			var err error
			begun, err = g.Allow(bg())
			require.NoError(t, err, name)
			time.Sleep(time.Hour)
			g.Breaker().OpenFor(48 * time.Hour)
		}
		require.NoError(t, g.Run(bg(), succeed), name)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
	}
}

// A gate forgets the durations of calls when the clock is a new one.
func TestHopelessDeadlinesAreLearnedAnewWithEachClock(t *testing.T) {
	config := weir.Config{RefuseHopeless: true}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	for name, g := range map[string]*weir.Gate{"gate": weir.New("g", config), "key": group.Get("k")} {
		hopeless := func(t *testing.T) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := g.Run(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			_, refused := errors.AsType[*weir.HopelessError](err)
			return refused
		}
		for range 3 {
			synctest.Test(t, func(t *testing.T) {
				for range 2 { // the first may be a test
					require.False(t, hopeless(t), "%s: nothing is known", name)
				}
				for range 100 {
					require.NoError(t, g.Run(t.Context(), func(context.Context) error {
						time.Sleep(50 * time.Millisecond)
						return nil
					}))
				}
				_ = hopeless(t) // one hopeless call per second is a test
				require.True(t, hopeless(t), "%s: calls take 50 ms", name)
			})
		}
		require.False(t, hopeless(t), "%s: with the real clock", name)
	}
}
