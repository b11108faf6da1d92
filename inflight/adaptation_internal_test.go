package inflight

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// forEachSeed runs a test with several random services.
func forEachSeed(t *testing.T, test func(t *testing.T, m *model)) {
	for seed := range uint64(3) {
		test(t, newModel(seed))
	}
}

// In each of these cases refusing does not help, so the bound must refuse no call, or almost none.

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
		m.times = mixOf(0.1, 500*ms, 5*ms)
		require.Zero(t, m.advance(3*time.Minute).refused)
	})
}

func TestPausesOfACollector(t *testing.T) {
	for _, states := range []bool{true, false} {
		forEachSeed(t, func(t *testing.T, m *model) {
			m.states, m.servers, m.rate, m.times, m.timeout = states, 20, 600, exponential(20*ms), constantTime(2*time.Second)
			m.advance(10 * time.Second)
			for range 20 {
				m.servers = 0
				refused := m.advance(300 * ms).refused
				m.servers = 20
				require.Zero(t, refused+m.advance(3*time.Second).refused)
			}
		})
	}
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

// The service scales, so each call is slower and none waits for another.
func TestAServiceThatIsSlowWithoutOverload(t *testing.T) {
	for name, c := range map[string]struct {
		times          func(*rand.Rand) time.Duration
		states         bool
		timeout        time.Duration
		refusedPercent int
	}{
		"12 times as slow":                     {exponential(240 * ms), true, 3 * time.Second, 0},
		"30 times as slow":                     {exponential(600 * ms), true, 3 * time.Second, 0},
		"12 times as slow, no deadline":        {exponential(240 * ms), false, time.Minute, 0},
		"half of the calls 40 times as slow":   {mixOf(0.5, 800*ms, 20*ms), true, 2 * time.Second, 0},
		"half of them, no deadline":            {mixOf(0.5, 800*ms, 20*ms), false, time.Minute, 0},
		"most of the calls 40 times as slow":   {mixOf(0.75, 800*ms, 20*ms), true, 3 * time.Second, 0},
		"80 times as slow, late for their own": {exponential(1600 * ms), true, 4 * time.Second, 5},
	} {
		forEachSeed(t, func(t *testing.T, m *model) {
			m.servers, m.rate, m.times, m.states, m.timeout = 10_000, 200, exponential(20*ms), c.states, constantTime(c.timeout)
			m.advance(20 * time.Second)
			m.times = c.times
			require.LessOrEqual(t, m.advance(time.Minute).refused, 200*60*c.refusedPercent/100, name)
			m.times = exponential(20 * ms)
			m.advance(5 * time.Second)
			require.Zero(t, m.advance(20*time.Second).refused, name)
		})
	}
}

// One host of several hangs. The calls to the others are as fast as usual.
func TestCallsThatGetNoAnswerBesideFastOnes(t *testing.T) {
	for lost, refused := range map[float64]int{0.05: 0, 0.2: 0, 0.33: 0, 0.5: 600} { // of 6,000
		forEachSeed(t, func(t *testing.T, m *model) {
			m.advance(20 * time.Second)
			m.lost = lost
			require.LessOrEqual(t, m.advance(time.Minute).refused, refused, "a share of %v", lost)
		})
	}
}

func TestTheLimitDoesNotCreepUp(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(5 * time.Minute)
		require.LessOrEqual(t, m.adaptation.limit, float64(startLimit))
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

// A quota of the service refuses calls at any number in flight. The calls that it lets in are fast.
func TestARateLimitOfTheServiceIsNoReasonToRefuse(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.advance(20 * time.Second)
		m.words = 0.4
		require.Zero(t, m.advance(time.Minute).refused)
	})
}

// For a quarter of the time the service refuses all calls with its word, however few are in flight.
// A lower limit does not help, so the word is soon ignored.
func TestAWordThatComesWithFewCallsInFlightTooIsIgnored(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.servers, m.rate, m.times, m.timeout = 10_000, 800, exponential(400*ms), constantTime(30*time.Second)
		m.advance(10 * time.Second)
		refused := 0
		for range 200 {
			m.words = 1
			refused += m.advance(75 * ms).refused
			m.words = 0
			refused += m.advance(220 * ms).refused
		}
		require.Less(t, refused, 800*59/20)
		m.advance(20 * time.Second)
		require.Zero(t, m.advance(10*time.Second).refused)
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
		require.True(t, m.adaptation.bounding)
		m.times = exponential(50 * ms)
		m.advance(2 * time.Second)
		require.LessOrEqual(t, m.advance(20*time.Second).refused, 20*100/500)
	})
}

// The service can hold a few calls, and says so when it has too many. Without a bound a fifth of
// the calls would be refused by it.
func TestAShortQueueThatSaysThatItIsFull(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.servers, m.rate, m.times, m.room = 10, 200, exponential(40*ms), 40
		m.advance(30 * time.Second)
		m.servers = 6 // take 150 calls per second
		m.advance(5 * time.Second)
		later := m.advance(30 * time.Second)
		require.Equal(t, words, m.adaptation.reason)
		require.Less(t, later.failed, 200*30/20)
		require.Greater(t, later.good, 150*30*95/100)
		m.servers = 10
		m.advance(3 * time.Second)
		require.LessOrEqual(t, m.advance(20*time.Second).refused, 20*200/500)
	})
}

// Callers who state no deadline are taken to allow a second.
func TestAnOverloadForMinutes(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.timeout, m.states = constantTime(time.Minute), false
		m.advance(30 * time.Second)
		m.rate = 400 // of 200
		m.advance(10 * time.Second)
		all := m.advance(2 * time.Minute)
		require.Less(t, m.adaptation.usual.median, float64(70*ms), "it does not grow with the overload")
		require.InEpsilon(t, 200*120, all.good, 0.05, "nothing of the capacity is lost")
		require.Less(t, all.slowest, 2*time.Second)
	})
}

func TestCallsThatNeverEndAreEvidence(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.states = false
		m.advance(30 * time.Second)
		m.servers, m.timeout = 0, constantTime(24*time.Hour)
		require.Less(t, m.advance(time.Minute).most, 200, "of 6,000 calls")
		require.Equal(t, silence, m.adaptation.reason)
	})
}

// Calls that never end hold all slots. A probe shows that the service is well again.
func TestAProbePassesWhenAllSlotsAreHeld(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.states = false
		m.advance(30 * time.Second)
		m.lost, m.timeout = 1, constantTime(24*time.Hour)
		m.advance(time.Minute)
		held := m.inFlight
		m.lost = 0
		m.advance(4 * time.Minute)
		require.Zero(t, m.advance(20*time.Second).refused)
		require.GreaterOrEqual(t, m.inFlight, held)
	})
}

// Half a minute after an outage, five hundred calls in flight are allowed as before it.
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

// Half of the calls fail at once, and the others are twice as many as the service can answer.
func TestEarlyFailuresAreNotFastAnswers(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.states, m.timeout = false, constantTime(time.Minute)
		m.advance(30 * time.Second)
		m.rate, m.fails = 800, 0.5
		m.advance(20 * time.Second)
		later := m.advance(time.Minute)
		require.InEpsilon(t, 200*60, later.good, 0.05, "nothing of the capacity is lost")
		require.Less(t, later.slowest, 2*time.Second)
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
	a := newAdaptation(maxLimit, 0)
	for i := range cohort/2 - 1 {
		a.advance(time.Duration(i+1)*time.Hour, uint64(2*i+2), 1)
		a.recordSuccess(time.Duration(i)*time.Minute, 0)
		a.recordFailure(time.Hour, 0)
		a.recordOverloaded(0)
	}
	require.False(t, a.bounding)
	require.False(t, a.usual.known())
}

// A tenth of the first calls are short, and end before the others. They are no sample of all.
func TestTheUsualLatencyIsNotThatOfTheCallsThatEndFirst(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.servers, m.rate, m.times = 1000, 100, mixOf(0.9, time.Second, 5*ms)
		m.timeout = constantTime(3 * time.Second)
		m.advance(900 * ms)
		require.False(t, m.adaptation.usual.known())
		m.advance(5 * time.Second)
		require.InEpsilon(t, time.Second, m.adaptation.usual.median, 0.5)
	})
}

// The first calls are streams that do not end. Later calls teach the usual latency.
func TestTheUsualLatencyOfCallsBesideStreams(t *testing.T) {
	forEachSeed(t, func(t *testing.T, m *model) {
		m.lost, m.states, m.timeout = 1, false, constantTime(24*time.Hour)
		m.advance(400 * ms)
		m.lost = 0
		m.advance(10 * time.Second)
		require.InEpsilon(t, 35*ms, m.adaptation.usual.median, 0.6)
	})
}

func mixOf(share float64, slow, fast time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return slow
		}
		return fast
	}
}

// The history counts the calls in flight by when they began as a list of all calls does, to the
// length of a span.
func TestHistoryCountsCallsByWhenTheyBegan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	var h history
	var now time.Duration
	var started uint64
	var began []time.Duration // of the calls in flight
	for range 20_000 {
		now += time.Duration(r.ExpFloat64() * float64(ms))
		h.add(now, started, 10*ms)
		if r.IntN(2) == 0 || len(began) == 0 {
			began = append(began, now)
			started++
		} else {
			i := r.IntN(len(began))
			h.ended(began[i], 1, 1)
			began = append(began[:i], began[i+1:]...)
		}
		since := now - 50*ms
		most, least := 0, 0
		for _, b := range began {
			if b > since {
				least++
			}
			if b >= since-25*ms {
				most++
			}
		}
		younger := h.younger(since, started, len(began))
		require.GreaterOrEqual(t, younger, float64(least))
		require.LessOrEqual(t, younger, float64(most))
	}
}

// From whatever happened before, a service that is well again gets all calls.
func FuzzTheWayBack(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, states bool) {
		m := newModel(seed)
		m.states = states
		r := rand.New(rand.NewPCG(seed, 9))
		for range 1 + r.IntN(6) {
			m.servers, m.rate = r.IntN(12), 20+180*r.Float64()
			m.times = exponential(time.Duration(5+r.IntN(2000)) * ms)
			m.fails, m.lost, m.room = 0.3*r.Float64(), 0.6*r.Float64(), 1+r.IntN(100)
			m.timeout = constantTime(time.Duration(20+r.IntN(3000)) * ms)
			m.advance(time.Duration(r.IntN(20_000)) * ms)
		}
		m.servers, m.rate, m.fails, m.lost, m.room = 100, 100, 0, 0, math.MaxInt
		m.times, m.timeout, m.queue = exponential(50*ms), constantTime(time.Second), nil
		m.advance(30 * time.Second)
		require.Zero(t, m.advance(30*time.Second).refused)
	})
}

// Whatever the order of events, the limit is a number from 1 to the upper bound.
func FuzzAdaptation(f *testing.F) {
	f.Add(uint64(1), uint16(1))
	f.Add(uint64(2), uint16(300))
	f.Fuzz(func(t *testing.T, seed uint64, most uint16) {
		r := rand.New(rand.NewPCG(seed, 2))
		a := newAdaptation(max(int(most), 1), time.Duration(seed%2)*ms)
		times := []time.Duration{math.MinInt64, -1, 0, 1, 10 * ms, time.Second, time.Hour, math.MaxInt64}
		anyTime := func() time.Duration { return times[r.IntN(len(times))] / time.Duration(1+r.IntN(3)) }
		now, started := time.Duration(0), uint64(0)
		for range 2000 {
			now += times[r.IntN(6)]
			started += r.Uint64N(40)
			a.advance(now, started, r.IntN(300)-1)
			switch r.IntN(10) {
			case 0:
				a.limitReached()
			case 1:
				a.recordCancelled(anyTime())
			case 2:
				a.every = float64(uint64(1) << r.IntN(10))
			case 3:
				a.recordOverloaded(anyTime())
			case 4, 5, 6:
				a.recordFailure(anyTime(), anyTime())
			default:
				a.recordSuccess(anyTime(), anyTime())
			}
			for _, x := range []float64{a.limit, a.usual.median, a.patience, a.score, a.fullAt, a.rate(), a.young()} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0) || x < 0, "%+v", a)
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
			slot, _ := l.TryAcquire(t.Context())
			if i >= 50_000 && slot.start != untimed {
				timed++
			}
			slot.Done(t.Context(), nil)
		}
		require.InDelta(t, 50_000/32, timed, 1)
		require.Zero(t, l.InFlight())
	})
}

// A gate tells the bound that the deadline of a call has passed, though its breaker ignores that.
func TestTheBoundOfAGateJudgesDeadlinesByItself(t *testing.T) {
	for _, expired := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := inside{}.New("g", 0, true)
			for range 100 {
				start, _, _ := l.occupy()
				time.Sleep(20 * ms)
				inside{}.End(t.Context(), l, start, window.Success, false)
			}
			for range 300 {
				start, _, ok := l.occupy()
				if ok {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					time.AfterFunc(time.Second, func() {
						inside{}.End(ctx, l, start, window.Ignored, expired)
						cancel()
					})
				}
				time.Sleep(30 * ms)
			}
			require.Equal(t, expired, l.Explain() != "")
			time.Sleep(2 * time.Second)
		})
	}
}

// The first median is that of 32 calls, of which 28 have ended. Calls that have failed or still run
// count as longer than the successes.
func TestTheFirstMedian(t *testing.T) {
	for failed, median := range map[int]time.Duration{0: 17 * ms, 5: 17 * ms, 11: 17 * ms, 12: 16 * ms, 13: 0} {
		u := usualLatency{to: time.Second}
		for range failed {
			u.end(0)
		}
		for n := range cohort*7/8 - failed {
			require.False(t, u.known())
			u.learn(time.Second, float64(time.Duration(n+1)*ms), 0)
			u.end(0)
		}
		require.InDelta(t, float64(median), u.median, 0, "%d have failed", failed)
	}
}
