package breaker_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// observe returns the metrics of a source by name and attribute values.
func observe(s stat.Source) map[string]float64 {
	seen := map[string]float64{}
	for s, v := range s.Observe {
		seen[strings.TrimPrefix(s.Instrument.Name, "weir.breaker.")+" "+strings.Join(s.Values[1:len(s.Values)-1], " ")] = v
	}
	return seen
}

func TestObserveShowsEverySeriesFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Cooldown: 5 * time.Second, FailureRate: 0.25, MinCalls: 4})
		want := map[string]float64{
			"state closed": 1, "state open": 0, "state half_open": 0,
			"transitions closed": 0, "transitions open": 0, "transitions half_open": 0,
			"state_time closed": 0, "state_time open": 0, "state_time half_open": 0,
			"calls success": 0, "calls failure": 0, "calls ignored": 0, "calls refused": 0,
			"window.calls success": 0, "window.calls failure": 0, "window.calls ignored": 0, "window.calls refused": 0,
			"slow_calls ": 0, "late_results ": 0, "abandoned_probes ": 0, "dropped_changes ": 0,
			"threshold.failure_ratio ": 0.25, "threshold.min_calls ": 4,
		}
		for _, s := range []string{"recovering", "forced_open", "forced_closed", "disabled", "shadow"} {
			want["state "+s], want["transitions "+s], want["state_time "+s] = 0, 0, 0
		}
		require.Equal(t, want, observe(b))

		time.Sleep(2 * time.Second)
		run(t, b, 3, succeed)
		failing := holdPermits(t, b, 1)
		early := holdPermits(t, b, 2)
		failing[0].Record(bg(), nil, breaker.Failure)
		requireRefused(t, b)
		early[0].Record(bg(), nil, breaker.Success)
		time.Sleep(3 * time.Second)
		changed := map[string]float64{
			"state closed": 0, "state open": 1, "transitions open": 1, "state_time closed": 2, "state_time open": 3,
			"calls success": 3, "calls failure": 1, "calls refused": 1, "window.calls success": 3, "window.calls failure": 1,
			"window.calls refused": 1, "late_results ": 1, "window.failure_ratio ": 0.25, "open.remaining ": 2,
		}
		maps.Copy(want, changed)
		require.Equal(t, want, observe(b))

		time.Sleep(4 * time.Second) // half-open for two seconds, without a call
		maps.Copy(want, map[string]float64{
			"state open": 0, "state half_open": 1, "transitions half_open": 1, "state_time open": 5, "state_time half_open": 2,
			"window.calls success": 0, "window.calls failure": 0, "window.calls refused": 0,
		})
		delete(want, "window.failure_ratio ")
		delete(want, "open.remaining ")
		require.Equal(t, want, observe(b))
	})
}

func TestObserveYieldsTheSameSeriesEachTime(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	var first []*stat.Series
	for s := range b.Observe {
		first = append(first, s)
	}
	i := 0
	for s := range b.Observe {
		require.Same(t, first[i], s)
		i++
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range b.Observe {
		}
	}))
}

func TestCountersBeganWhenTheBreakerDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := breaker.New("b", breaker.Config{}), time.Now()
		run(t, b, 3, succeed)
		time.Sleep(time.Hour)
		for s := range b.Observe {
			require.True(t, s.Created.Equal(began), "%v", s)
		}
	})
}

func TestObserveWhileCallsAreMade(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 5, Cooldown: breaker.Off, Window: time.Millisecond})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 5000 {
				if i%3 == 0 {
					_ = b.Run(bg(), succeed)
				} else {
					_ = b.Run(bg(), fail)
				}
			}
		})
	}
	last := map[string]float64{}
	for range 500 {
		now := observe(b)
		require.Equal(t, 1.0, now["state closed"]+now["state open"]+now["state half_open"]+now["state recovering"], "in one state at a time")
		for k, v := range now {
			if strings.HasPrefix(k, "calls ") || strings.HasPrefix(k, "transitions ") {
				require.GreaterOrEqual(t, v, last[k], "%s only grows", k)
			}
		}
		last = now
	}
	wg.Wait()
	total := b.Totals()
	require.Equal(t, int64(20_000), total.Calls()+total.Refused+b.StatsNow().Late)
}

func TestStatsOfABreakerThatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		open(t, b)
		opened := time.Now()
		time.Sleep(time.Minute)
		s := b.StatsNow()
		require.Equal(t, breaker.HalfOpen, s.State)
		require.True(t, s.Since.Equal(opened.Add(time.Second)))
		require.Equal(t, int64(20), s.Totals.Failures)
	})
}

// The breakers of other tests read the wall clock. This breaker is given its times, and some of
// them are in the past.
func TestTimesThatGoBack(t *testing.T) {
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	b := breaker.NewAt("b", breaker.Config{Cooldown: 5 * time.Second, Recovery: breaker.Off, MinCalls: 2, Probes: 1}, t0)
	do := func(s float64, o breaker.Outcome) bool {
		p, err := b.AllowAt(at(s))
		if err != nil {
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.ErrorIs(t, b.CheckAt(at(s)), breaker.ErrOpen)
			return false
		}
		return p.RecordAt(at(s), o)
	}
	require.True(t, do(0, breaker.Failure))
	require.True(t, do(10, breaker.Failure)) // the first failure has left the window
	require.Equal(t, breaker.Closed, b.StateAt(at(10)))
	require.True(t, do(9, breaker.Failure), "a stale time counts into the newest bucket")
	require.Equal(t, breaker.Open, b.StateAt(at(10)))
	require.Equal(t, int64(2), b.CountsAt(at(10)).Failures)
	require.False(t, do(14.9, breaker.Success))
	require.False(t, do(3, breaker.Success), "a stale time moves no deadline")
	require.NoError(t, b.CheckAt(at(15)))
	require.True(t, do(15, breaker.Failure))
	require.False(t, do(16, breaker.Success))
	require.True(t, do(20, breaker.Success))
	require.Equal(t, breaker.Closed, b.StateAt(at(20)))
}

func TestLatencyOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.Config{Latency: true}
		b := breaker.New("b", c)
		sleep := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		run(t, b, 3, sleep(time.Second))
		l := b.Latency()
		require.Equal(t, int64(3), l.Count())
		require.Equal(t, time.Second, l.Mean())
		time.Sleep(time.Hour)
		l = b.Latency()
		require.Zero(t, l.Count())

		c.Buckets = 5 // a different window: the lifetime is kept
		require.NoError(t, b.Reconfigure(c))
		run(t, b, 1, sleep(3*time.Second))
		l = b.LifetimeLatency()
		require.Equal(t, int64(4), l.Count())
		require.Equal(t, 1500*time.Millisecond, l.Mean())
		require.Equal(t, 3*time.Second, l.Max)
	})
	b := breaker.New("b", breaker.Config{})
	run(t, b, 1, succeed)
	require.Zero(t, b.LifetimeLatency())
	for range b.Histograms {
		t.Error("without Config.Latency there is none")
	}
	require.EqualError(t, breaker.Config{LastCalls: 1, Latency: true}.Validate(), "breaker: Latency is true, must be false if LastCalls is set")
}

func TestHistogramsShowTheLatencyOfTheWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Latency: true})
		var series *stat.Series
		show := func() (h stat.Histogram) {
			for s, got := range b.Histograms {
				require.True(t, series == nil || series == s, "the same series each time")
				series, h = s, got
			}
			return h
		}
		h := show()
		require.Zero(t, h.Count(), "there from the start")
		run(t, b, 2, func(context.Context) error { time.Sleep(4 * time.Second); return nil })
		time.Sleep(time.Hour)
		h = show()
		require.Equal(t, instrument.BreakerCallDuration, series.Instrument)
		require.Equal(t, []string{"b", ""}, series.Values)
		require.Equal(t, []int64{2}, h.Counts)
		require.Equal(t, 16, h.Offset, "4 s are the bound of the bucket")
		require.Equal(t, 8.0, h.Sum)
	})
}

// A transition is dated at the time of its result, which may be before the latest observation.
func TestTheTimeInAStateNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{ConsecutiveFailures: 1})
		closed := func() (seconds float64) {
			for s, v := range b.Observe {
				if s.Instrument == instrument.BreakerStateTime && s.Values[1] == "closed" {
					seconds = v
				}
			}
			return seconds
		}
		time.Sleep(2 * time.Second)
		before := time.Now()
		p, err := b.Allow()
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		require.InDelta(t, 2.001, closed(), 1e-9)
		require.True(t, p.RecordAt(before, breaker.Failure))
		require.InDelta(t, 2.001, closed(), 1e-9)
	})
}
