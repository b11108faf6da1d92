package breaker_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// Scenario A38.
func TestOneOutcomePerCall(t *testing.T) {
	const callers, calls = 8, 12_500
	b := breaker.New("b", breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 50 * time.Microsecond})
	var succeeded, failed, ignored, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for range calls {
				p, err := b.Allow()
				if err != nil {
					refused.Add(1)
					continue
				}
				o := breaker.Outcome(rnd.IntN(3))
				if p.Record(bg(), nil, o) {
					[]*atomic.Int64{&succeeded, &failed, &ignored}[o].Add(1)
				}
			}
		})
	}
	wg.Wait()
	total := b.Totals()
	require.Equal(t, window.Totals{
		Successes: succeeded.Load(), Failures: failed.Load(), Ignored: ignored.Load(), Refused: refused.Load(),
		ConsecutiveFailures: total.ConsecutiveFailures,
	}, total)
	require.Equal(t, int64(callers*calls), succeeded.Load()+failed.Load()+ignored.Load()+refused.Load()+b.StatsNow().Late)
}

// Scenario A19.
// Other breakers are changed by the results of calls that began before the breaker opened.
func TestLateResultsChangeNothing(t *testing.T) {
	for _, late := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Ignored} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes atomic.Int64
				b := breaker.New("b", breaker.Config{Recovery: breaker.Off, OnChange: func(breaker.Change) { changes.Add(1) }})
				early := holdPermits(t, b, 12)
				open(t, b)
				until := time.Now().Add(5 * time.Second)

				for _, p := range early[:4] { // while open: neither closed nor prolonged
					require.False(t, p.Record(bg(), nil, late))
				}
				require.Equal(t, breaker.Open, b.State())
				time.Sleep(time.Until(until))
				require.Equal(t, breaker.HalfOpen, b.State())

				// while half-open: no verdict, and no slot acquired or released
				probe := holdPermits(t, b, 2)
				for _, p := range early[4:8] {
					require.False(t, p.Record(bg(), nil, late))
				}
				require.Equal(t, breaker.HalfOpen, b.State())
				require.Zero(t, b.Counts().Calls())
				probe = append(probe, holdPermits(t, b, 1)...)
				requireRefused(t, b)
				for _, p := range probe {
					require.True(t, p.Record(bg(), nil, breaker.Success))
				}
				require.Equal(t, breaker.Closed, b.State())

				for _, p := range early[8:] { // while closed again: they do not count
					require.False(t, p.Record(bg(), nil, late))
				}
				require.Zero(t, b.Counts().Calls())
				require.Equal(t, int64(12), b.StatsNow().Late)
				require.Equal(t, int64(3), changes.Load())
			})
		})
	}
}

// Scenario A30. In another breaker a permit that is used twice counts twice.
func TestAResultCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 3})
		p, err := b.Allow()
		require.NoError(t, err)
		require.True(t, p.Record(bg(), nil, breaker.Success))
		require.False(t, p.Record(bg(), nil, breaker.Success))
		require.False(t, p.Record(bg(), nil, breaker.Failure))
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Equal(t, window.Counts{Successes: 1}, withoutStreak(b.Counts()))
		require.Zero(t, b.StatsNow().Late)

		var none breaker.Permit
		require.False(t, none.Record(bg(), nil, breaker.Success))
		require.False(t, none.RecordAt(t0, breaker.Success))

		b = breaker.New("b", breaker.Config{})
		p, err = b.Allow()
		require.NoError(t, err)
		var counted atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if p.Record(bg(), nil, breaker.Failure) {
					counted.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), counted.Load())
		require.Equal(t, int64(1), b.Counts().Failures)
	})
}

func withoutStreak(c window.Counts) window.Counts {
	c.ConsecutiveFailures = 0
	return c
}

// Scenarios B56 and B57.
func TestResultsCountByState(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 2, Probes: 1, Cooldown: 5 * time.Second}, "0 S . closed", "0 AAA ... closed", "0 b . open 50 1 2 1 0",
		"0 gb !! open 50 1 2 1 0") // results that come while it is open change nothing
	require.Len(t, s.changes(), 1)
	s.do("5 E . open 100 0 1 1 0", "10 S . closed")
}

// Scenarios B81 and B82.
func TestResultsFromBeforeTheTripAreLate(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 2, Cooldown: 5 * time.Second}
	s := runScript(t, c, "0 AAA ... closed", "0 EEEEE ..... open", "5 AA .. half_open -1 0 0 0 0", "5 gbi !!! half_open -1 0 0 0 0", "5 S r half_open")
	require.Equal(t, int64(3), s.b.StatsAt(s.now).Late)
	s.do("5 gg .. closed")
}
