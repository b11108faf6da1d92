package latency_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
)

// endedCall is a call that took a time until it was answered or cut off.
type endedCall struct {
	took     time.Duration
	answered bool
}

// chanceWithin is the product-limit estimate of an answer within a time, from the sorted calls. Of
// calls with the same duration, the answered ones come first if answeredFirst is true, and
// otherwise last.
func chanceWithin(d time.Duration, calls []endedCall, answeredFirst bool) float64 {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b endedCall) int {
		if a.took != b.took || a.answered == b.answered {
			return cmp.Compare(a.took, b.took)
		}
		if a.answered == answeredFirst {
			return -1
		}
		return 1
	})
	survival := 1.0
	for i, c := range calls {
		if c.took > d {
			break
		}
		if c.answered {
			survival *= 1 - 1/float64(len(calls)-i)
		}
	}
	return 1 - survival
}

// boundOf returns the longest duration in the bucket of d.
func boundOf(d time.Duration) time.Duration {
	i := latency.BucketOf(int64(d))
	n := int64(latency.Bound(latency.Lowest+i)*1e9) + 2
	for latency.BucketOf(n) != i {
		n--
	}
	return time.Duration(n)
}

func roundToBuckets(calls []endedCall) (r []endedCall) {
	for _, c := range calls {
		r = append(r, endedCall{boundOf(c.took), c.answered})
	}
	return r
}

// knownWithin counts the calls that were answered, or are known to have had no answer within d.
func knownWithin(d time.Duration, calls []endedCall) (n int) {
	for _, c := range calls {
		if c.answered || c.took >= d {
			n++
		}
	}
	return n
}

// randomCalls returns calls to a service whose answers are rarely fast, with a few deadlines.
func randomCalls(r *rand.Rand) (calls []endedCall) {
	early, median := 0.08*r.Float64(), time.Duration(1+r.IntN(200))*time.Millisecond
	for range 60 + r.IntN(400) {
		takes := time.Duration(float64(median) * math.Exp(0.3*r.NormFloat64()))
		if r.Float64() < early {
			takes /= 10
		}
		deadline := time.Duration(1+r.IntN(4)) * median / 3
		calls = append(calls, endedCall{min(takes, deadline), takes <= deadline})
	}
	return calls
}

func TestTheEstimateIsThatOfTheSortedCallsRoundedUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	estimates := 0
	for range 300 {
		calls := randomCalls(r)
		var s latency.Survival
		for _, c := range calls {
			s.Record(0, c.took, c.answered)
		}
		e := s.Estimate(int64(200 * time.Millisecond))
		up := roundToBuckets(calls)
		for d := time.Millisecond; d < time.Second; d = d * 11 / 10 {
			bound := boundOf(d)
			want := chanceWithin(bound, up, true)
			improbable := want < latency.Improbable && knownWithin(bound, up) >= latency.Evidence
			require.Equal(t, improbable, d <= e.Until, "%v of %v", d, e.Until)
			if !improbable {
				continue
			}
			require.InDelta(t, want, e.Chance(d), 1e-6)
			// Without rounding, the estimate lies between the following two.
			require.LessOrEqual(t, e.Chance(d), chanceWithin(bound, calls, true)+1e-6)
			require.GreaterOrEqual(t, chanceWithin(bound, up, false)+1e-6, chanceWithin(bound, calls, true))
			estimates++
		}
	}
	require.Greater(t, estimates, 1000)
}

func TestCallsThatWereAllCutOffSayNothingAboutLongerTimes(t *testing.T) {
	var s latency.Survival
	for range latency.Evidence - 1 {
		s.Record(0, 100*time.Millisecond, false)
	}
	require.Zero(t, s.Estimate(int64(time.Second)).Until, "too few calls")
	s.Record(0, 100*time.Millisecond, false)
	e := s.Estimate(int64(2 * time.Second))
	require.Equal(t, boundOf(100*time.Millisecond), e.Until)
	require.Zero(t, e.Chance(100*time.Millisecond))
	require.Zero(t, e.Chance(-1))
}

func TestTheShareOfCallsCutOffEarlyIsNotTakenAsSlow(t *testing.T) {
	var s latency.Survival
	for range 1000 { // cut off at 1 ms, so only the other calls count for 20 ms
		s.Record(0, time.Millisecond, false)
	}
	for range 10 {
		s.Record(0, 20*time.Millisecond, true)
	}
	for range 90 {
		s.Record(0, 50*time.Millisecond, true)
	}
	e := s.Estimate(int64(time.Second))
	require.Less(t, e.Until, 20*time.Millisecond, "10 %% of the calls that were not cut off succeed in 20 ms")
	require.Greater(t, e.Until, 15*time.Millisecond)
}

func TestTheEstimateForgetsAfterTenSeconds(t *testing.T) {
	fill := func(s *latency.Survival, at time.Duration) {
		for range latency.Evidence {
			s.Record(int64(at), time.Second, true)
		}
	}
	for _, start := range []time.Duration{0, 4 * time.Second, 9*time.Second + 1, -time.Hour, -time.Hour - time.Millisecond, 1 << 60} {
		var s latency.Survival
		fill(&s, start)
		known := func(after time.Duration) bool { return s.Estimate(int64(start+after)).Until > 0 }
		require.True(t, known(200*time.Millisecond), "%v", start)
		require.True(t, known(5*time.Second), "%v", start)
		require.False(t, known(10*time.Second), "%v", start)

		fill(&s, start)
		require.False(t, known(time.Minute), "after a pause: %v", start)

		fill(&s, start+time.Minute)
		require.True(t, known(time.Minute+200*time.Millisecond), "%v", start)
		require.False(t, known(0), "the clock went back: %v", start)
		fill(&s, start)
		require.True(t, known(200*time.Millisecond), "%v", start)
	}
}

func TestDurationsOutsideTheBucketsAreCounted(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		var s latency.Survival
		for range latency.Evidence {
			s.Record(0, d, true)
		}
		require.Equal(t, d > time.Hour, s.Estimate(int64(time.Second)).Until > time.Second, "%v", d)
		require.NotPanics(t, func() { s.Estimate(int64(time.Second)).Chance(math.MaxInt64) })
	}
}

func TestConcurrentCallsAreAllCounted(t *testing.T) {
	var s latency.Survival
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 5000 {
				// up to the end of the first generation, and with less than a second between them
				at := int64(4*time.Second + time.Duration(n)*200*time.Microsecond)
				s.Record(at, time.Second, n%50 == 0 && i == 0)
				require.LessOrEqual(t, s.Estimate(at).Chance(time.Second), latency.Improbable)
			}
		})
	}
	group.Wait()
	e := s.Estimate(int64(5*time.Second + 200*time.Millisecond))
	require.InDelta(t, 100.0/40_000, e.Chance(time.Second), 1e-6)
}
