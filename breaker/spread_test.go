package breaker_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// requireEvenSpread requires that the waits lie from low to below high, and that no twentieth of
// this range holds more than twice its share of them.
func requireEvenSpread(t *testing.T, waits []time.Duration, low, high time.Duration) {
	t.Helper()
	var parts [20]int
	for _, wait := range waits {
		require.GreaterOrEqual(t, wait, low)
		require.Less(t, wait, high)
		parts[20*(wait-low)/(high-low)]++
	}
	require.LessOrEqual(t, slices.Max(parts[:]), 2*len(waits)/20, "%v", parts)
}

// refusedWaits returns the waits that the callers of n refused calls get from RetryAfter.
func refusedWaits(t *testing.T, b *breaker.Breaker, n int) (waits []time.Duration, last *breaker.OpenError) {
	t.Helper()
	for range n {
		var e *breaker.OpenError
		require.ErrorAs(t, b.Run(bg(), succeed), &e)
		waits, last = append(waits, e.RetryAfter()), e
	}
	return waits, last
}

func TestRefusalsWhileProbesAreInFlightHaveDifferentWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 2, ProbeTimeout: 10 * time.Second})
		holdPermits(t, b, 1)
		time.Sleep(time.Second)
		holdPermits(t, b, 1)
		for age := time.Second; age <= 9*time.Second; age += time.Second {
			waits, e := refusedWaits(t, b, 1000)
			require.Equal(t, breaker.HalfOpen, e.State)
			low := min(age, 10*time.Second-age) // of the oldest probe, whose slot falls free first
			requireEvenSpread(t, waits, max(low, time.Millisecond), low+time.Second)
			time.Sleep(time.Second)
		}
	})
}

// If the time that a refusal names has passed when a caller calls RetryAfter, the caller gets the
// shortest wait.
func TestStaleRefusalHasTheShortestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: 10 * time.Second})
		holdPermits(t, b, 1)
		_, e := refusedWaits(t, b, 1)
		time.Sleep(11 * time.Second)
		require.Equal(t, time.Millisecond, e.RetryAfter())
	})
}

// newRecovering returns a breaker that has just entered the state Recovering.
func newRecovering(t *testing.T) *breaker.Breaker {
	t.Helper()
	b := newHalfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: time.Hour})
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Recovering, b.State())
	return b
}

func TestRefusalsOfARecoveringBreakerHaveDifferentWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecovering(t)
		holdPermits(t, b, 1) // one of every eight passes, and the next seven are refused
		var e *breaker.OpenError
		require.ErrorAs(t, b.Run(bg(), succeed), &e)
		require.Equal(t, breaker.Recovering, e.State)
		var waits []time.Duration
		for range 1000 {
			waits = append(waits, e.RetryAfter())
		}
		requireEvenSpread(t, waits, time.Second, 2*time.Second)
	})
}

func TestLoneCallPassesAfterTheWaitOfARecoveringBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecovering(t)
		for range 20 {
			p, err := b.Allow()
			require.NoError(t, err)
			p.Record(bg(), nil, breaker.Ignored) // so that the share does not grow
			waits, _ := refusedWaits(t, b, 1)
			time.Sleep(waits[0])
		}
	})
}

// Two breakers whose states begin at different times begin at different places in the sequence.
func TestBreakersHaveDifferentFirstWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		for range 1000 {
			time.Sleep(time.Microsecond)
			b := newRecovering(t)
			holdPermits(t, b, 1)
			first, _ := refusedWaits(t, b, 1)
			waits = append(waits, first...)
		}
		requireEvenSpread(t, waits, time.Second, 2*time.Second)
	})
}

// extraOpenTimes opens breakers one microsecond apart. The service has told all of them to wait
// until the same time. extraOpenTimes returns how long after that time each breaker stays open.
func extraOpenTimes(t *testing.T, c breaker.Config, n int, asked time.Duration) (longer []time.Duration) {
	t.Helper()
	c.MinCalls = 1
	all := make([]*breaker.Breaker, n)
	for i := range all {
		all[i] = breaker.New("service", c) // all at the same time
	}
	end := time.Now().Add(asked)
	for _, b := range all {
		p, err := b.Allow()
		require.NoError(t, err)
		p.SetRetryAfter(time.Until(end))
		p.Record(bg(), nil, breaker.Failure)
		_, e := refusedWaits(t, b, 1)
		require.Equal(t, breaker.Open, e.State)
		require.Equal(t, time.Until(e.Until), e.RetryAfter(), "the same for all callers")
		longer = append(longer, e.Until.Sub(end))
		time.Sleep(time.Microsecond)
	}
	return longer
}

func TestBreakersWithTheSameRetryAfterReopenAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requireEvenSpread(t, extraOpenTimes(t, breaker.Config{}, 1000, 20*time.Second), 0, 2*time.Second)
		requireEvenSpread(t, extraOpenTimes(t, breaker.Config{CooldownJitter: 0.5}, 1000, 20*time.Second), 0, 10*time.Second)
		requireEvenSpread(t, extraOpenTimes(t, breaker.Config{CooldownJitter: 0.5}, 1000, 61*time.Second), -time.Second, 29*time.Second)
		for _, longer := range extraOpenTimes(t, breaker.Config{CooldownJitter: breaker.Off}, 10, 20*time.Second) {
			require.Zero(t, longer)
		}
	})
}

func TestStretchedWaitDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{MinCalls: 1, CooldownJitter: 1, MaxRetryAfter: math.MaxInt64})
		p, err := b.Allow()
		require.NoError(t, err)
		p.SetRetryAfter(math.MaxInt64)
		p.Record(bg(), nil, breaker.Failure)
		time.Sleep(100 * 365 * 24 * time.Hour)
		requireRefused(t, b)
	})
}

func TestHalfOpenTimeoutStretchesTheWaitOfTheService(t *testing.T) {
	var longer []time.Duration
	for i := range 1000 {
		b := breaker.NewAt("b", breaker.Config{MinCalls: 1, HalfOpenTimeout: time.Second}, t0)
		opened := time.Duration(i) * time.Microsecond
		p, err := b.AllowAt(after(opened))
		require.NoError(t, err)
		p.RecordAt(after(opened), breaker.Failure)
		probed := opened + 5*time.Second
		p, err = b.AllowAt(after(probed))
		require.NoError(t, err)
		p.SetRetryAfter(21 * time.Second)
		p.RecordAt(after(probed), breaker.Ignored)
		var e *breaker.OpenError
		require.ErrorAs(t, b.CheckAt(after(probed+2*time.Second)), &e)
		longer = append(longer, e.Until.Sub(after(probed+21*time.Second)))
	}
	requireEvenSpread(t, longer, 0, 2*time.Second)
}

func TestCooldownIsLengthenedByNoJitter(t *testing.T) {
	for _, jitter := range []float64{0, 0.5, breaker.Off} {
		synctest.Test(t, func(t *testing.T) {
			c := breaker.Config{Cooldown: 20 * time.Second, CooldownJitter: jitter}
			for _, beyond := range extraOpenTimes(t, c, 100, 0) {
				require.LessOrEqual(t, beyond, 20*time.Second+100*time.Microsecond)
				if jitter <= 0 {
					require.GreaterOrEqual(t, beyond, 20*time.Second)
				}
			}
		})
	}
}

// A replay gives the same times, because the share follows from the time of the opening.
func TestReplayedWaitEndsAtTheSameTime(t *testing.T) {
	replay := func() time.Time {
		b := breaker.NewAt("b", breaker.Config{MinCalls: 1}, t0)
		p, err := b.AllowAt(after(time.Second))
		require.NoError(t, err)
		p.SetRetryAfter(20 * time.Second)
		p.RecordAt(after(2*time.Second), breaker.Failure)
		_, err = b.AllowAt(after(3 * time.Second))
		var e *breaker.OpenError
		require.ErrorAs(t, err, &e)
		return e.Until
	}
	first := replay()
	require.True(t, first.After(after(22*time.Second)))
	require.Equal(t, first, replay())
}
