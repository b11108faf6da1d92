package throttle_test

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// A throttle with the defaults has 100 calls in its window, of which 20 succeeded. By the formula
// of the book the probability of a refusal is (requests - K * accepts) / (requests + 1).
func TestReconfigureChangesTheProbabilityOfARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		config throttle.Config
		want   float64
	}{
		"the same":           {throttle.Config{}, 60. / 101},
		"K":                  {throttle.Config{K: 3}, 40. / 101},
		"MinCalls":           {throttle.Config{MinCalls: 101}, 0},
		"MaxRefusal":         {throttle.Config{MaxRefusal: 0.1}, 0.1},
		"CountRefused":       {throttle.Config{CountRefused: true}, 60. / 101},
		"the default Window": {throttle.Config{Window: 10 * time.Second}, 60. / 101},
		"another Window":     {throttle.Config{Window: time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			th := throttle.New("t", throttle.Config{})
			for i := range 100 {
				err := errDown
				if i < 20 {
					err = nil
				}
				recordOne(t, th, err)
			}
			require.NoError(t, th.Reconfigure(c.config))
			require.InDelta(t, c.want, th.RefusalRate(), 1e-9)
			require.Equal(t, window.Totals{Successes: 20, Failures: 80}, withoutStreak(th.Totals()))
		})
	}
}

// recordOne records a call that ended with an error or nil, whether or not a call would be refused.
func recordOne(t *testing.T, th *throttle.Throttle, err error) {
	t.Helper()
	th.SetRandom(func() float64 { return 1 }, time.Hour) // refuses none
	permit, refused := th.Allow()
	require.NoError(t, refused)
	require.True(t, permit.Done(bg(), err))
}

// withoutStreak removes a number that depends on the order of calls.
func withoutStreak(c window.Totals) window.Totals {
	c.ConsecutiveFailures = 0
	return c
}

func TestCallsInFlightAreJudgedByTheNewConfig(t *testing.T) {
	th := throttle.New("t", throttle.Config{})
	first, err := th.Allow()
	require.NoError(t, err)
	second, err := th.Allow()
	require.NoError(t, err)
	accepts := func(error) window.Outcome { return window.Success }
	require.NoError(t, th.Reconfigure(throttle.Config{Window: time.Minute, Classify: accepts}))
	require.True(t, first.Done(bg(), errDown))
	require.True(t, second.Record(window.Failure))
	require.Equal(t, window.Counts{Successes: 1, Failures: 1}, window.Counts{Successes: th.Counts().Successes, Failures: th.Counts().Failures})
}

func TestReconfigureOfAThrottleRefuses(t *testing.T) {
	th := throttle.New("t", throttle.Config{MaxRefusal: 0.5, MinCalls: 1})
	for range 10 {
		recordOne(t, th, errDown)
	}
	for _, bad := range []throttle.Config{{K: 0.5}, {K: math.NaN()}, {MinCalls: -1}, {MaxRefusal: 2}, {Window: -1}} {
		require.EqualError(t, th.Reconfigure(bad), bad.Validate().Error())
	}
	require.InDelta(t, 0.5, th.RefusalRate(), 0)
}

// Old windows are reduced to their totals.
func TestTotalsOfThrottleWindowsThatEndedLongAgoAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("t", throttle.Config{})
		for i := range 10 {
			recordOne(t, th, nil)
			require.NoError(t, th.Reconfigure(throttle.Config{Window: time.Duration(i+1) * time.Second}))
			require.EqualValues(t, i+1, th.Totals().Successes)
			require.LessOrEqual(t, th.EndedWindows(), 4)
			time.Sleep(25 * time.Second)
		}
	})
}

func TestReconfigureOfAThrottleLosesNoCall(t *testing.T) {
	th := throttle.New("t", throttle.Config{})
	var made, failed, refused atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for i := range 3000 {
				fn := succeed
				if i%4 != 0 {
					fn = fail
				}
				switch err := th.Run(bg(), fn); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, throttle.ErrRefused):
					refused.Add(1)
				default:
					failed.Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	for i := range 50 {
		require.NoError(t, th.Reconfigure(throttle.Config{
			Window: time.Duration(1+i%3) * time.Second, K: 1 + float64(i%2), MinCalls: 1 + i%30, CountRefused: i%5 == 0,
		}))
		for before := made.Load(); made.Load() == before && made.Load()+failed.Load()+refused.Load() < 12_000; {
			runtime.Gosched()
		}
	}
	callers.Wait()
	require.Equal(t, window.Totals{Successes: made.Load(), Failures: failed.Load(), Refused: refused.Load()}, withoutStreak(th.Totals()))
	require.EqualValues(t, made.Load(), metricsOf(th)["calls success"])
}
