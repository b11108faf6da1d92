package inflight

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// forEachSeed runs a test with several random services.
func forEachSeed(t *testing.T, test func(t *testing.T, m *model)) {
	for seed := range uint64(2) {
		test(t, newModel(seed))
	}
}

// The known pitfalls: in each of these cases a bound must refuse no call, or almost none.

func TestABusyServiceIsNotAReasonToRefuse(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.rate = 170 // of 200
		require.Zero(t, m.advance(2*time.Minute).refused)
	})
}

func TestIdleAtNightAndBusyAtNine(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.rate, m.servers = 1, 2000
		m.advance(time.Hour)
		m.rate = 20_000 // 1,000 in flight
		require.Zero(t, m.advance(2*time.Second).refused)
	})
}

func TestFastAndSlowCalls(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.rate = 120 // 65 % of the capacity
		m.times = func(r *rand.Rand) time.Duration {
			if r.Float64() < 0.1 {
				return 500 * ms
			}
			return 5 * ms
		}
		require.Zero(t, m.advance(3*time.Minute).refused)
		require.Greater(t, m.adaptation.usual.slow(), float64(500*ms), "they are usual")
	})
}

func TestPausesOfACollector(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(10 * time.Second)
		for range 30 {
			m.servers = 0
			refused := m.advance(250 * ms).refused
			m.servers = 10
			require.Zero(t, refused+m.advance(3*time.Second).refused)
		}
	})
}

func TestADeploymentMakesAllFasterOrSlower(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.rate = 70
		for _, mean := range []time.Duration{50 * ms, 100 * ms, 50 * ms, 25 * ms, 50 * ms} {
			m.times = exponential(mean)
			require.Zero(t, m.advance(time.Minute).refused, mean)
		}
	})
}

// A service that is ten times slower by itself needs ten times as many calls in flight. The
// adaptation notices that, and no call is refused any more.
func TestAServiceThatIsSlowWithoutOverload(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.servers, m.rate, m.timeout = 1000, 200, constantTime(time.Minute)
		m.advance(20 * time.Second)
		m.times = exponential(500 * ms)
		first := m.advance(2 * time.Minute)
		require.Less(t, float64(first.refused), 0.25*float64(first.good))
		require.Zero(t, m.advance(time.Minute).refused)
	})
}

func TestTheLimitDoesNotCreepUp(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(5 * time.Minute)
		require.LessOrEqual(t, m.adaptation.limit, float64(startLimit))
	})
}

func TestTheUsualLatencyDoesNotGrowWithAnOverload(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.timeout = constantTime(time.Minute)
		m.advance(30 * time.Second)
		m.rate = 400 // of 200
		m.advance(10 * time.Second)
		all := m.advance(2 * time.Minute)
		require.Less(t, m.adaptation.usual.mean, float64(100*ms))
		require.InEpsilon(t, 200*120, all.good, 0.05, "nothing of the capacity is lost")
		require.Less(t, all.slowest, 2*time.Second)
	})
}

func TestCallersInAHurryTeachNothing(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.timeout = func(r *rand.Rand) time.Duration {
			if r.Float64() < 0.6 {
				return 10 * ms
			}
			return time.Second
		}
		require.Zero(t, m.advance(2*time.Minute).refused)
	})
}

func TestErrorsTeachNothing(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.fails = 0.2
		require.Zero(t, m.advance(time.Minute).refused)
		m.fails = 1
		require.Zero(t, m.advance(time.Minute).refused)
	})
}

// The situations that the bound is for.

func TestLostCapacity(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(30 * time.Second)
		m.servers = 2 // take 40 calls per second, of 100
		m.advance(5 * time.Second)
		later := m.advance(30 * time.Second)
		require.InDelta(t, 40*30, later.good, 0.1*40*30)
		require.Less(t, later.failed, 30*100/50)
		m.servers = 10
		m.advance(2 * time.Second)
		require.LessOrEqual(t, m.advance(20*time.Second).refused, 20*100/500)
	})
}

func TestAHang(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(30 * time.Second)
		m.times = exponential(time.Second)
		all := m.advance(20 * time.Second)
		require.Less(t, all.failed, 20*100/8, "of nearly all without a bound")
		m.times = exponential(50 * ms)
		m.advance(2 * time.Second)
		require.LessOrEqual(t, m.advance(20*time.Second).refused, 20*100/500)
	})
}

func TestCallsThatNeverEndAreEvidence(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(30 * time.Second)
		m.servers, m.timeout = 0, constantTime(time.Hour)
		require.Less(t, m.advance(time.Minute).most, 2*startLimit)
		require.Less(t, m.adaptation.limit, float64(startLimit)/2, "the calls that follow are fewer than before")
	})
}

// The calls are no longer bounded if the limit was not reached for two seconds. So ten seconds
// after an outage they are unbounded, and five hundred calls in flight are allowed as before the
// outage.
func TestABurstAfterAnOutageIsNotRefused(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(30 * time.Second)
		m.times = exponential(time.Second)
		m.advance(20 * time.Second)
		require.True(t, m.adaptation.bounding)
		m.times, m.servers = exponential(50*ms), 2000
		m.advance(10 * time.Second)
		m.rate = 10_000
		require.Zero(t, m.advance(2*time.Second).refused)
	})
}

// Half of the calls fail at once, and the others are twice as many as the service can answer. The
// failures do not count as fast answers. So a good call takes about half of the latency that counts
// as slow, as it does without failures.
func TestEarlyFailuresAreNotFastAnswers(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(30 * time.Second)
		m.rate, m.fails, m.timeout = 800, 0.5, constantTime(time.Minute)
		m.advance(20 * time.Second)
		good := m.advance(time.Minute).good
		require.InEpsilon(t, 200*60, good, 0.05, "nothing of the capacity is lost")
		inQueueAndServed := float64(len(m.queue) + m.busy)
		require.InEpsilon(t, m.adaptation.targetLatency()/float64(time.Second)*200, inQueueAndServed, 0.4, "by Little's law")
	})
}

// One or two calls in flight are too little to learn from, and enough to see that calls fail late.
func TestAProcessWithHardlyACall(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.rate = 2
		require.Zero(t, m.advance(10*time.Minute).refused)
		m.servers = 0
		m.advance(20 * time.Second)
		require.Equal(t, uint32(1), m.adaptation.wholeLimit())
		m.queue, m.servers = nil, 10
		m.advance(10 * time.Second)
		require.Zero(t, m.advance(time.Minute).refused)
	})
}

func TestFewCallsTeachNothing(t *testing.T) {
	a := newAdaptation(maxLimit, false)
	before := a.limit
	for i := range knownAfter - 1 {
		a.advance(time.Duration(i)*time.Hour, uint64(i+1), 1)
		a.recordEnd(time.Duration(i)*time.Minute, i%2 == 0)
	}
	require.InDelta(t, before, a.limit, 0)
	require.False(t, a.bounding)
}

func FuzzAdaptation(f *testing.F) {
	f.Add(uint64(1), uint16(1))
	f.Add(uint64(2), uint16(300))
	f.Fuzz(func(t *testing.T, seed uint64, most uint16) {
		r := rand.New(rand.NewPCG(seed, 2))
		a := newAdaptation(max(int(most), 1), seed%2 == 0)
		times := []time.Duration{math.MinInt64, -1, 0, 1, 10 * ms, time.Second, time.Hour, math.MaxInt64}
		now, started := time.Duration(0), uint64(0)
		for range 2000 {
			now += times[r.IntN(6)]
			started += r.Uint64N(40)
			a.advance(now, started, r.IntN(300)-1)
			switch r.IntN(8) {
			case 0:
				a.limitReached()
			case 1:
				a.recordCancelled(times[r.IntN(len(times))])
			case 2:
				a.setEvery(float64(uint64(1) << r.IntN(10)))
			default:
				a.recordEnd(times[r.IntN(len(times))]/time.Duration(1+r.IntN(3)), r.IntN(3) == 0)
			}
			for _, x := range []float64{a.limit, a.usual.mean, a.usual.slow(), a.usual.healthy, a.recent, a.score} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%+v", a)
			}
			require.GreaterOrEqual(t, a.limit, 1.0)
			require.LessOrEqual(t, a.limit, max(float64(most), 1))
		}
	})
}

// At 100,000 calls per second one in 32 is timed.
func TestOnlySomeCallsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Adaptive: true})
		timed := 0
		for i := range 100_000 {
			if i%100 == 0 {
				time.Sleep(ms)
			}
			slot, _ := l.TryAcquire()
			if i >= 50_000 && slot.start != untimed {
				timed++
			}
			slot.Done(t.Context(), nil)
		}
		require.InDelta(t, 50_000/32, timed, 1)
		require.Zero(t, l.InFlight())
	})
}
