package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// alwaysBelow is a source of random numbers that is always 0. With it and without bounds, a call is
// refused if and only if the probability of a refusal is above 0.
func alwaysBelow() float64 { return 0 }

// infiniteInterval is an interval so long that no call is allowed because of it.
const infiniteInterval = time.Duration(math.MaxInt64)

// recordResults records results at the time u. It tries each call until the throttle allows it.
func recordResults(t *testing.T, th *throttle.Throttle, u time.Time, good, bad int) {
	t.Helper()
	permits := make([]throttle.Permit, good+bad)
	for i := range permits {
		for try := 0; ; try++ {
			var err error
			if permits[i], err = th.AllowAt(u); err == nil {
				break
			}
			require.Less(t, try, 100_000, "the throttle lets nothing pass")
		}
	}
	for i := range permits {
		o := window.Success
		if i >= good {
			o = window.Failure
		}
		require.True(t, permits[i].RecordAt(u, o))
	}
}

// seededRandom returns a source of random numbers that is the same in each run.
func seededRandom() func() float64 { return rand.New(rand.NewPCG(1, 2)).Float64 }

func TestThrottleRefusesWithTheProbabilityOfTheFormula(t *testing.T) {
	for _, c := range []struct {
		k         float64
		good, bad int
		want      float64
	}{
		{2, 0, 20, 20.0 / 21},
		{2, 10, 90, 80.0 / 101},
		{2, 49, 51, 2.0 / 101},
		{2, 50, 50, 0}, // half of them: nothing is refused yet
		{2, 100, 0, 0},
		{1, 99, 1, 1.0 / 101},
		{1.5, 40, 60, 40.0 / 101},
		{1e300, 1, 99, 0},
	} {
		th := throttle.NewAt("t", throttle.Config{K: c.k, MaxRefusal: 1}, t0).SetRandom(seededRandom(), infiniteInterval)
		recordResults(t, th, t0, c.good, c.bad)
		require.InDelta(t, c.want, th.RefusalRateAt(t0), 1e-12, "K %v, %d good, %d bad", c.k, c.good, c.bad)

		const calls = 100_000
		refused := 0
		for range calls {
			if _, err := th.AllowAt(t0); err != nil {
				require.ErrorIs(t, err, throttle.ErrRefused)
				refused++
			}
		}
		require.InDelta(t, c.want, float64(refused)/calls, 0.005, "K %v, %d good, %d bad", c.k, c.good, c.bad)
		require.EqualValues(t, refused, th.CountsAt(t0).Refused)
	}
}

func TestThrottleRefusesTheSameCallsWithTheSameSeed(t *testing.T) {
	var runs [2]string
	for i := range runs {
		th := throttle.NewAt("t", throttle.Config{}, t0).SetRandom(seededRandom(), time.Second)
		recordResults(t, th, t0, 10, 50)
		for range 200 {
			_, err := th.AllowAt(t0)
			runs[i] += fmt.Sprint(err == nil)[:1]
		}
	}
	require.Equal(t, runs[0], runs[1])
	require.Contains(t, runs[0], "t")
	require.Contains(t, runs[0], "f")
}

func TestThrottleRefusesNothingBelowMinCalls(t *testing.T) {
	for least, calls := range map[int]int{0: 20, 7: 7, 1: 1} {
		th := throttle.NewAt("t", throttle.Config{MinCalls: least}, t0).SetRandom(alwaysBelow, infiniteInterval)
		for n := range calls {
			p, err := th.AllowAt(t0)
			require.NoError(t, err, "MinCalls %d after %d failures", least, n)
			p.RecordAt(t0, window.Failure)
		}
		_, err := th.AllowAt(t0)
		require.ErrorIs(t, err, throttle.ErrRefused, "MinCalls %d after %d failures", least, calls)
	}
}

func TestThrottleCountsItsOwnRefusalsOnlyIfConfigured(t *testing.T) {
	for _, counted := range []bool{false, true} {
		refuse := 0.0
		c := throttle.Config{CountRefused: counted, MaxRefusal: 1}
		th := throttle.NewAt("t", c, t0).SetRandom(func() float64 { return refuse }, infiniteInterval)
		recordResults(t, th, t0, 10, 20)
		require.InDelta(t, 10.0/31, th.RefusalRateAt(t0), 1e-12)
		for range 70 {
			_, err := th.AllowAt(t0)
			require.Error(t, err)
		}
		want := map[bool]float64{false: 10.0 / 31, true: 80.0 / 101}[counted]
		require.InDelta(t, want, th.RefusalRateAt(t0), 1e-12, "counted: %t", counted)
		require.EqualValues(t, 70, th.CountsAt(t0).Refused)
	}
}

func TestThrottleBoundsTheProbability(t *testing.T) {
	rate := func(c throttle.Config, good, bad int) float64 {
		th := throttle.NewAt("t", c, t0)
		recordResults(t, th, t0, good, bad)
		return th.RefusalRateAt(t0)
	}
	require.InDelta(t, 0.99, rate(throttle.Config{}, 0, 500), 0, "one call in a hundred passes by default")
	require.InDelta(t, 0.7, rate(throttle.Config{MaxRefusal: 0.7}, 0, 500), 0)
	require.InDelta(t, 500.0/501, rate(throttle.Config{MaxRefusal: 1}, 0, 500), 1e-12)
}

func TestThrottleLetsOneCallPassEachInterval(t *testing.T) {
	for every, want := range map[time.Duration]int{time.Second: 10, 100 * time.Millisecond: 100, infiniteInterval: 0} {
		th := throttle.NewAt("t", throttle.Config{Window: time.Hour}, t0).SetRandom(alwaysBelow, every)
		recordResults(t, th, t0, 0, 20)
		passed, last := 0, t0
		for at := t0; !at.After(t0.Add(10 * time.Second)); at = at.Add(time.Millisecond) {
			if _, err := th.AllowAt(at); err == nil {
				require.Equal(t, max(every, 100*time.Millisecond), max(at.Sub(last), 100*time.Millisecond), "no sooner and no later")
				passed, last = passed+1, at
			}
		}
		require.Equal(t, want, passed, "every %v", every)
	}
}

func TestThrottleCountsAPassByChanceAsThePassOfTheInterval(t *testing.T) {
	dice := 0.0
	th := throttle.NewAt("t", throttle.Config{}, t0).SetRandom(func() float64 { return dice }, time.Second)
	recordResults(t, th, t0, 0, 20)
	allowed := func(after time.Duration) bool {
		_, err := th.AllowAt(t0.Add(after))
		return err == nil
	}
	dice = 0.999
	require.True(t, allowed(900*time.Millisecond), "by chance")
	dice = 0
	require.False(t, allowed(1800*time.Millisecond))
	require.True(t, allowed(1900*time.Millisecond), "a second after the last")
	require.False(t, allowed(1900*time.Millisecond), "one and no more")
	require.False(t, allowed(-time.Hour), "a stale time gets none")
	_, err := th.AllowAt(time.Time{})
	require.Error(t, err, "however stale it is")
}

// runOutage runs a steady load against a service that is down for its first half minute. It returns
// the share of the calls that reach the service: the mean during the second half of the outage, and
// the share in each second after it.
func runOutage(t *testing.T, c throttle.Config, seconds int) (during float64, after []float64) {
	t.Helper()
	const perSecond, down = 100, 30
	th := throttle.NewAt("t", c, t0).SetRandom(seededRandom(), time.Second)
	for s := range down + seconds {
		made := 0
		for i := range perSecond {
			at := t0.Add(time.Duration(s)*time.Second + time.Duration(i)*time.Second/perSecond)
			p, err := th.AllowAt(at)
			if err != nil {
				continue
			}
			made++
			p.RecordAt(at, map[bool]window.Outcome{true: window.Failure, false: window.Success}[s < down])
		}
		switch {
		case s >= down:
			after = append(after, float64(made)/perSecond)
		case s >= down/2:
			during += float64(made) / perSecond / (down / 2)
		}
	}
	return during, after
}

func TestThrottleRecoversAfterAnOutage(t *testing.T) {
	during, after := runOutage(t, throttle.Config{}, 15)
	require.InDelta(t, math.Sqrt(1000)/1000, during, 0.02, "of N calls in a window √N are made")
	require.GreaterOrEqual(t, during*100*15, 15.0, "a call a second at least")
	for s, share := range after[10:] {
		require.InDelta(t, 1, share, 0, "%d s after the outage, a window and more", s+10)
	}

	during, after = runOutage(t, throttle.Config{CountRefused: true}, 120)
	require.Less(t, during, 0.03, "the service is all but left alone")
	require.Less(t, after[10], 0.5, "it takes longer than a window")
	require.InDelta(t, 1, after[119], 0.05, "and less than two minutes")
}

func TestThrottleRefusesNothingAfterASilence(t *testing.T) {
	for _, counted := range []bool{false, true} {
		th := throttle.NewAt("t", throttle.Config{CountRefused: counted}, t0).SetRandom(alwaysBelow, infiniteInterval)
		recordResults(t, th, t0, 0, 20)
		for range 500 {
			_, err := th.AllowAt(t0)
			require.Error(t, err)
		}
		later := t0.Add(11 * time.Second)
		require.Zero(t, th.RefusalRateAt(later))
		require.Zero(t, th.CountsAt(later).Calls()+th.CountsAt(later).Refused)
		_, err := th.AllowAt(later)
		require.NoError(t, err)
	}
}
