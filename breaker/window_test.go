package breaker_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
)

// Scenario A06.
func TestAnOldBucketLeavesWithItsContent(t *testing.T) {
	c := breaker.Config{Window: 3 * time.Second, Buckets: 3, FailureRate: 1, MinCalls: 100}
	runScript(t, c, "0 EE .. closed", "1 SSS ... closed", "2 E . closed -1 3 6 3 0", "3 - - closed -1 3 4 1 0", "4 - - closed -1 0 1 1 0", "5 - - closed -1 0 0 0 0")
}

// Scenario A07.
func TestABurstAcrossTheEdgeOfTheWindow(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 10_900 {
		p, err := b.AllowAt(at(9999))
		require.NoError(t, err)
		o, end := breaker.Success, at(9999)
		if i >= 10_000 {
			o, end = breaker.Failure, at(10_000)
		}
		p.RecordAt(end, o)
	}
	require.Equal(t, breaker.Closed, b.StateAt(at(10_000)))
	require.InDelta(t, 0.0826, b.CountsAt(at(10_000)).FailureRate(), 1e-4)
}

// Scenario A08.
func TestAfterALongIdleTimeTheWindowIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		run(t, b, 19, fail)
		time.Sleep(time.Hour)
		require.Zero(t, withoutStreak(b.StatsNow().Counts))
		require.Zero(t, withoutStreak(b.Counts()))
		run(t, b, 1, fail)
		require.Equal(t, breaker.Closed, b.State())
	})
}

// Scenario A09.
func TestManyFirstWritersAfterAnIdleTimeLoseNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
		for round := range 50 {
			time.Sleep(time.Minute)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { _ = b.Run(bg(), fail) })
			}
			wg.Wait()
			require.Equal(t, int64(20), b.Counts().Failures)
			require.Equal(t, int64(20*(round+1)), b.Totals().Failures)
		}
	})
}

// Scenario A11.
func TestCallsAtTimesBeforeTheStartCount(t *testing.T) {
	s := runScript(t, breaker.Config{MinCalls: 5}, "0 S . closed -1 1 1 0 0")
	s.now = t0.Add(-time.Hour)
	s.do("-3600 SE .. closed -1 2 3 1 0")
	s.now = t0.Add(-100 * 365 * 24 * time.Hour)
	require.Equal(t, "..", s.call('S')+s.call('E'))
	s.do("0 E . open 50 3 6 3 0")
}

// Scenario B29.
func TestTheLastTenCallsAreJudged(t *testing.T) {
	c := breaker.Config{LastCalls: 10, MinCalls: 10, FailureRate: 0.5}
	s := runScript(t, c)
	s.b.ForceAt(s.now, breaker.Shadow, "") // to see that the window continues
	s.do("0 SSEE .... shadow -1 2 4 2 0", "0 EEEESSSS ........ shadow 60 4 10 6 0", "0 SSS ... shadow 30 7 10 3 0")
}

// Scenario B37.
func TestIgnoredCallsAreNotAmongTheLastCalls(t *testing.T) {
	b := breaker.New("b", breaker.Config{LastCalls: 2, Classify: breaker.Ignore(io.EOF)})
	run(t, b, 1, failWith(io.EOF))
	run(t, b, 1, failWith(&net.OpError{Op: "dial", Err: errDown}))
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, int64(1), b.Counts().Failures)
	require.Equal(t, int64(1), b.Counts().Calls())
}

// In other breakers the counts of one reading do not fit together while the window moves on.
func TestNoTornReadingWhileTheWindowMoves(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, Window: time.Millisecond, Buckets: 10})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				if c := b.Counts(); c.Successes != 0 || c.Failures < 0 || c.Slow != 0 {
					t.Errorf("every call fails, and the counts are %+v", c)
					return
				}
			}
		})
	}
	for range testenv.Repeat(200_000, 60_000) {
		_ = b.Run(bg(), fail)
	}
	done.Store(true)
	wg.Wait()
}
