package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// newClockConfigs are configs of breakers that open after five failures and close again with the
// first success after a second.
func newClockConfigs() map[string]breaker.Config {
	five := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 5, Cooldown: time.Second, Recovery: breaker.Off, Probes: 1}
	rate := breaker.Config{FailureRate: 0.5, FailureRun: breaker.Off, MinCalls: 5, Cooldown: time.Second, Recovery: breaker.Off, Probes: 1}
	timed, last, trips, shared := rate, rate, five, rate
	timed.SlowCall, timed.Latency = time.Hour, true
	last.LastCalls = 5
	trips.ConsecutiveFailures = 0
	trips.Trip = func(c window.Counts) (string, bool) { return "five", c.Failures == 5 }
	shared.SharedCounts = func() window.Counts { return window.Counts{} }
	run := breaker.Config{FailureRate: 0.5, MinCalls: 20, FailureRun: 5, Cooldown: time.Second, Recovery: breaker.Off, Probes: 1}
	return map[string]breaker.Config{
		"in a row": five, "rate": rate, "timed": timed, "last": last, "trip": trips, "shared": shared, "run": run,
	}
}

// The ways in which a clock may leave a breaker.
var leftStates = map[string]func(b *breaker.Breaker){
	"closed":    func(*breaker.Breaker) {},
	"open":      func(b *breaker.Breaker) { failUntilRefused(b) },
	"opened":    func(b *breaker.Breaker) { b.OpenFor(48 * time.Hour) },
	"half-open": func(b *breaker.Breaker) { b.OpenFor(0); _, _ = b.Allow() },
	"recovering": func(b *breaker.Breaker) {
		c := breaker.Config{Recovery: time.Hour, Probes: 1}
		if b.Reconfigure(c) == nil {
			b.OpenFor(0)
			_ = b.Run(bg(), succeed)
		}
	},
	"some failures": func(b *breaker.Breaker) {
		for range 4 {
			_ = b.Run(bg(), fail)
		}
	},
}

// failUntilRefused makes failing calls until one is refused, and returns how many were made.
func failUntilRefused(b *breaker.Breaker) (n int) {
	for b.Run(bg(), fail) != nil && b.State() != breaker.Open && n < 100 {
		n++
	}
	return n + 1
}

// useAsNew requires that the breaker behaves as a new one.
func useAsNew(t *testing.T, name string, b *breaker.Breaker) {
	t.Helper()
	require.Equal(t, breaker.Closed, b.State(), name)
	require.False(t, b.Tripped(), name)
	require.Zero(t, b.Counts(), name)
	require.NoError(t, b.Run(bg(), succeed), name)
	require.Equal(t, int64(1), b.Counts().Successes, name)
	if b.Latency().Count() > 0 {
		require.Equal(t, int64(1), b.Latency().Count(), name)
	}
}

// Breakers are package variables that are used with the real clock, then in two bubbles, each with
// a clock that begins in the year 2000, and then with the real clock again. In each bubble they
// begin as new breakers do, whatever their state was, and totals never fall.
func TestABreakerStartsAgainWithEachClock(t *testing.T) {
	for rules, c := range newClockConfigs() {
		for left, leave := range leftStates {
			for _, stateFirst := range []bool{false, true} {
				b := breaker.New("b", c)
				group := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: c})
				for kind, b := range map[string]*breaker.Breaker{"single": b, "key": group.Get("k")} {
					name := rules + ", left " + left + ", " + kind
					before := b.Totals()
					inBubble := func(t *testing.T) {
						if left == "recovering" {
							require.NoError(t, b.Reconfigure(c))
						}
						if stateFirst {
							useAsNew(t, name, b)
						}
						if n := failUntilRefused(b); !stateFirst {
							require.Equal(t, 5, n, name)
						}
						require.Equal(t, breaker.Open, b.State(), name)
						time.Sleep(999 * time.Millisecond)
						require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen, name)
						time.Sleep(time.Millisecond)
						require.NoError(t, b.Run(bg(), succeed), name)
						require.Equal(t, breaker.Closed, b.State(), name)
						time.Sleep(time.Hour)
						if rules != "last" {
							require.Zero(t, b.Counts().Calls(), "%s: an hour later", name)
						}
						require.NoError(t, b.Run(bg(), succeed), name)
						leave(b)
						after := b.Totals()
						require.GreaterOrEqual(t, after.Calls(), before.Calls()+6, name)
						before = after
						for range b.Observe {
						}
					}
					require.NoError(t, b.Run(bg(), succeed))
					leave(b)
					before = b.Totals()
					synctest.Test(t, inBubble)
					synctest.Test(t, inBubble)
				}
			}
		}
	}
}

// A breaker that starts again keeps its override, and is a new one underneath.
func TestAnOverrideOutlivesTheClock(t *testing.T) {
	for _, s := range []breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow} {
		b := breaker.New("b", newClockConfigs()["rate"])
		failures := func(n int) (wouldOpen int64) {
			before, _ := b.ShadowTotals()
			for range n {
				_ = b.Run(bg(), fail)
			}
			after, _ := b.ShadowTotals()
			return after - before
		}
		failures(4)
		b.OpenFor(48 * time.Hour)
		b.Force(s, "")
		failures(4)
		inBubble := func(t *testing.T) {
			require.Equal(t, s, b.State())
			require.Zero(t, b.Counts())
			require.Zero(t, failures(4), "%s: fewer than MinCalls", s)
			time.Sleep(time.Hour)
			require.Zero(t, failures(4), "%s: the window was empty", s)
			require.Equal(t, s == breaker.Shadow, failures(1) == 1, s)
			require.Equal(t, s, b.State())
			b.Release()
			useAsNew(t, string(s), b)
			time.Sleep(time.Hour)
			b.OpenFor(48 * time.Hour)
			b.Force(s, "")
		}
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
	}
}

// The usual duration of calls is forgotten: calls that their deadlines ended count as they do for a
// new breaker.
func TestTheUsualDurationIsForgottenInANewClock(t *testing.T) {
	c := breaker.Config{FailureRun: breaker.Off, MinCalls: 5}
	take := func(b *breaker.Breaker, takes, patient time.Duration) {
		ctx, cancel := context.WithTimeout(bg(), patient)
		defer cancel()
		_ = b.Run(ctx, func(ctx context.Context) error {
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	openedAfter := func(b *breaker.Breaker) (n int) {
		for ; n < 20 && !b.Tripped(); n++ {
			take(b, time.Hour, 100*time.Millisecond)
		}
		return n
	}
	b := breaker.New("b", c)
	inBubble := func(t *testing.T) {
		require.Equal(t, openedAfter(breaker.New("new", c)), openedAfter(b))
		b.Reset()
		for range 100 { // calls usually take longer than the callers above allow
			take(b, 10*time.Second, time.Minute)
		}
		require.Equal(t, 20, openedAfter(b))
	}
	require.NoError(t, b.Run(bg(), succeed))
	synctest.Test(t, inBubble)
	synctest.Test(t, inBubble)
}

// Calls that began in one clock end in another one.
func TestACallEndsInAnotherClock(t *testing.T) {
	for rules, c := range newClockConfigs() {
		c.SlowCall, c.SlowRate = time.Second, 0.5
		// a member, because it counts its calls in flight
		b := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: c}).Get(0)
		begin := func() (many []*breaker.Permit) {
			for range 20 {
				p, err := b.Allow()
				require.NoError(t, err, rules)
				many = append(many, &p)
			}
			return many
		}
		end := func(many []*breaker.Permit) {
			for _, p := range many {
				require.True(t, p.Done(bg(), nil), rules)
			}
			require.Equal(t, breaker.Closed, b.State(), rules)
			require.Zero(t, b.Counts().Slow, rules)
			require.Less(t, b.LifetimeLatency().Max, time.Minute, rules)
			for range b.Observe {
			}
			require.Zero(t, b.StatsNow().Active, rules)
		}
		calls := begin()
		inBubble := func(t *testing.T) {
			require.NoError(t, b.Run(bg(), succeed), rules)
			end(calls)
			time.Sleep(time.Hour)
			calls = begin()
		}
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		synctest.Test(t, func(*testing.T) { end(calls) })
	}
}

// A breaker that was given times a year ahead of the clock starts again when it is given the time
// of the clock. Times that are not those of the clock are stale, however early they are.
func TestABreakerStartsAgainAfterAYearBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		for rules, c := range newClockConfigs() {
			c.Cooldown = time.Hour
			b := breaker.NewAt("b", c, time.Now())
			try := func(at time.Time, o breaker.Outcome) error {
				p, err := b.AllowAt(at)
				p.RecordAt(at, o)
				return err
			}
			now, ahead := time.Now(), time.Now().Add(year)
			for range 5 {
				require.NoError(t, try(ahead, breaker.Failure), rules)
			}
			for _, stale := range []time.Duration{1, time.Minute, year / 2, 2 * year} {
				require.ErrorIs(t, try(ahead.Add(-stale), breaker.Success), breaker.ErrOpen, rules)
			}
			require.Equal(t, breaker.Open, b.StateAt(ahead), rules)
			require.NoError(t, try(now, breaker.Success), rules)
			require.Equal(t, breaker.Closed, b.StateAt(now), rules)
			require.Equal(t, int64(1), b.CountsAt(now).Calls(), rules)
		}
	})
}

// A full group makes room in a new clock, because its idle keys are found to be idle.
func TestAGroupMakesRoomInANewClock(t *testing.T) {
	group := breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 4})
	fill := func(from int) {
		for key := range 4 {
			b := group.Get(from + key)
			require.NoError(t, b.Run(bg(), succeed))
		}
		require.Zero(t, group.Stats().Unguarded)
	}
	kept := group.Get(0)
	fill(0)
	inBubble := func(t *testing.T) {
		fill(100)
		time.Sleep(time.Hour)
		fill(200)
		time.Sleep(time.Hour)
		require.NoError(t, kept.Run(bg(), succeed))
	}
	synctest.Test(t, inBubble)
	synctest.Test(t, inBubble)
}
