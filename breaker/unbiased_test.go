package breaker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
)

// begin makes a call that takes the time and then succeeds or fails, and reports whether it passed.
func (w *wayBack) begin(took time.Duration, err error) bool {
	w.takes = func() (time.Duration, error) { return took, err }
	return w.call()
}

func newWayBack(c breaker.Config) *wayBack {
	return &wayBack{
		Rand:  rand.New(rand.NewPCG(1, 2)),
		group: breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: c}), patient: func() time.Duration { return time.Hour },
	}
}

// A healthy service answers 95 % of its calls after about a second and refuses 5 % at once. When
// the breaker is made, and after an outage, the errors come before the first success. With
// WEIR_SOAK=true there are three times as many calls.
func TestFastErrorsBeforeSlowSuccessesOpenNothing(t *testing.T) {
	for name, sigma := range map[string]float64{"constant": 0, "lognormal": 0.8} {
		for _, rate := range []float64{20, 600} {
			for kind, c := range map[string]breaker.Config{"default": {}, "in shadow": {Force: breaker.Shadow}} {
				t.Run(fmt.Sprintf("%s, %v/s, %s", name, rate, kind), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWayBack(c)
						refusedUntil := func(length time.Duration) (last time.Duration) {
							begin := time.Now()
							for time.Since(begin) < length {
								took, err := time.Duration(math.Exp(sigma*w.NormFloat64())*float64(time.Second)), error(nil)
								if w.Float64() < 0.05 {
									took, err = time.Millisecond, errDown
								}
								if !w.begin(took, err) {
									last = time.Since(begin)
								}
								w.sleep(time.Duration(w.ExpFloat64() / rate * float64(time.Second)))
							}
							return last
						}
						require.Zero(t, refusedUntil(time.Duration(testenv.Repeat(60, 20))*time.Second))
						opened, refused := w.group.Get(wayBackKey).ShadowTotals()
						require.Zero(t, opened+refused)
						if kind == "in shadow" {
							return
						}
						w.group.Get(wayBackKey).OpenFor(time.Second)
						require.Less(t, refusedUntil(time.Duration(testenv.Repeat(300, 75))*time.Second), time.Minute)
					})
				})
			}
		}
	}
}

// Bursts of calls come far apart. The breaker does not sample their beginnings, and their errors
// come first.
func TestFastErrorsOfABurstOpenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWayBack(breaker.Config{})
		for range 100 {
			for i := range 400 {
				took, err := time.Second, error(nil)
				if i%10 == 0 {
					took, err = time.Millisecond, errDown
				}
				require.True(t, w.begin(took, err))
			}
			w.sleep(time.Minute)
		}
	})
}

// A service that fails opens the breaker although calls that began before are in flight.
func TestAnOutageOpensThoughOlderCallsAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWayBack(breaker.Config{})
		for range 300 {
			require.True(t, w.begin(30*time.Second, nil))
			w.sleep(100 * time.Millisecond)
		}
		calls := 0
		for w.begin(time.Millisecond, errDown) {
			calls++
			w.sleep(100 * time.Millisecond)
		}
		require.Less(t, calls, 100)
	})
}

// A service whose calls hang until their deadlines opens the breaker as soon as one that fails at
// once, counted from the first failure.
func TestAHangOpensAsSoonAsItsCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opensAfter := func(took time.Duration) (after time.Duration) {
			w := newWayBack(breaker.Config{})
			for range 3000 {
				require.True(t, w.begin(10*time.Millisecond, nil))
				w.sleep(10 * time.Millisecond)
			}
			begin := time.Now()
			for w.begin(took, errDown) {
				w.sleep(10 * time.Millisecond)
			}
			return time.Since(begin)
		}
		require.InDelta(t, (opensAfter(time.Millisecond) + time.Second).Seconds(), opensAfter(time.Second).Seconds(), 0.3)
	})
}

func TestABreakerClosesThoughCallsTakeLongerThanProbeTimeout(t *testing.T) {
	for _, took := range []time.Duration{9 * time.Second, 11 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newWayBack(breaker.Config{})
			for w.begin(time.Millisecond, errDown) {
				w.sleep(500 * time.Millisecond)
			}
			begin := time.Now()
			for w.group.Get(wayBackKey).State() != breaker.Closed {
				w.begin(took, nil)
				w.sleep(500 * time.Millisecond)
				require.Less(t, time.Since(begin), 2*time.Minute, "%v", took)
			}
		})
	}
}

func TestABusyBreakerClosesThoughManyCallsFail(t *testing.T) {
	for _, share := range []float64{0.2, 0.3, 0.4} {
		for _, gap := range []time.Duration{10 * time.Millisecond, time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				w := newWayBack(breaker.Config{})
				w.group.Get(wayBackKey).OpenFor(time.Second)
				begin := time.Now()
				for w.group.Get(wayBackKey).State() != breaker.Closed {
					err := error(nil)
					if w.Float64() < share {
						err = errDown
					}
					w.begin(0, err)
					w.sleep(gap)
					require.Less(t, time.Since(begin), 3*time.Minute, "%v fail", share)
				}
			})
		}
	}
}

// Most callers allow less time than a call usually takes, and no call fails otherwise. Only the
// short calls of these callers succeed. With WEIR_SOAK=true there are five times as many seeds.
func TestShortDeadlinesOpenNothingHoweverLongCallsTake(t *testing.T) {
	for name, draw := range map[string]func(r *rand.Rand) time.Duration{
		"exponential": func(r *rand.Rand) time.Duration { return time.Duration(50e6 * r.ExpFloat64()) },
		"lognormal":   func(r *rand.Rand) time.Duration { return time.Duration(50e6 * math.Exp(r.NormFloat64())) },
		"uniform":     func(r *rand.Rand) time.Duration { return time.Duration((25 + 50*r.Float64()) * 1e6) },
		"bimodal": func(r *rand.Rand) time.Duration {
			if r.Float64() < 0.4 {
				return 2 * time.Millisecond
			}
			return 80 * time.Millisecond
		},
	} {
		for _, perSecond := range []float64{20, 120} {
			for kind, c := range map[string]breaker.Config{"default": {}, "in shadow": {Force: breaker.Shadow}} {
				synctest.Test(t, func(t *testing.T) {
					for seed := range uint64(testenv.Repeat(10, 2)) {
						w := newWayBack(c)
						w.Rand = rand.New(rand.NewPCG(seed, 6))
						w.takes = func() (time.Duration, error) { return draw(w.Rand), nil }
						w.patient = func() time.Duration {
							if w.Float64() < 0.65 {
								return 10 * time.Millisecond
							}
							return time.Second
						}
						for begin := time.Now(); time.Since(begin) < time.Minute; {
							require.True(t, w.call(), "%s, %v/s, seed %d", name, perSecond, seed)
							w.sleep(time.Duration(w.ExpFloat64() / perSecond * float64(time.Second)))
						}
						opened, _ := w.group.Get(wayBackKey).ShadowTotals()
						require.Zero(t, opened, "%s, %v/s, %s, seed %d", name, perSecond, kind, seed)
					}
				})
			}
		}
	}
}
