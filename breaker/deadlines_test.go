package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

const shortTimeout, longTimeout = 11 * time.Millisecond, 5 * time.Second

func TestDeadlinesThatAreTooShortOpenNothing(t *testing.T) {
	for name, c := range map[string]breaker.Config{
		"by default":      {},
		"last calls":      {LastCalls: 100},
		"slow calls":      {SlowCall: time.Second},
		"a short window":  {Window: time.Second},
		"an own classify": {Classify: breaker.FailOn(context.DeadlineExceeded)},
	} {
		for form, call := range callForms() {
			t.Run(name+", "+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(c, 50*time.Millisecond)
					defer s.group.Wait()
					s.call = call
					s.callFor(30*time.Second, longTimeout, shortTimeout, shortTimeout)
					time.Sleep(time.Second)
					require.Empty(t, s.refused)
					total := s.b.Totals()
					require.Equal(t, int64(1000), total.Successes)
					require.Less(t, total.Failures, int64(10), "before the first success nothing was usual")
				})
			})
		}
	}
}

// A caller that knows better records the outcome.
func TestARecordedFailureCountsAfterADeadlineThatIsTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 50*time.Millisecond)
		defer s.group.Wait()
		s.callFor(30*time.Second, longTimeout, shortTimeout, shortTimeout)
		require.Empty(t, s.refused)
		s.call = func(ctx context.Context, b *breaker.Breaker, fn func(context.Context) error) error {
			permit, err := b.Allow()
			if err != nil {
				return err
			}
			if err = fn(ctx); err != nil {
				permit.Record(ctx, err, breaker.Failure)
			}
			permit.Done(ctx, err)
			return err
		}
		s.callFor(30*time.Second, longTimeout, shortTimeout, shortTimeout)
		require.Greater(t, s.refused[longTimeout], 100)
	})
}

// A slow service makes every deadline look too short. So the breaker must not learn the durations
// of slow calls as the usual ones.
func TestAServiceThatBecomesSlowOpens(t *testing.T) {
	for name, others := range map[string][]time.Duration{
		"before any deadline passed": {longTimeout, 200 * time.Millisecond, 200 * time.Millisecond},
		"with hurried callers":       {longTimeout, 200 * time.Millisecond, 200 * time.Millisecond, shortTimeout},
	} {
		for at, speed := range map[string]time.Duration{"at once": 0, "within seconds": time.Second, "within minutes": time.Minute} {
			t.Run(name+", "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(breaker.Config{}, 20*time.Millisecond)
					defer s.group.Wait()
					s.callFor(time.Minute, others...)
					require.Empty(t, s.refused)
					slow := time.Now()
					s.takes = func(time.Duration) time.Duration {
						since := time.Since(slow)
						if since >= speed {
							return time.Second
						}
						return 20*time.Millisecond + time.Duration(980*float64(time.Millisecond)*float64(since)/float64(speed))
					}
					s.callFor(speed+15*time.Second, others...)
					require.NotEmpty(t, s.refused)
				})
			})
		}
	}
}

// While the deadlines of callers pass, the durations of a slow service do not become the usual
// ones, however long it is slow.
func TestACountedDeadlineKeepsCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 20*time.Millisecond)
		defer s.group.Wait()
		s.callFor(time.Minute, longTimeout, longTimeout, 200*time.Millisecond)
		s.takes = func(time.Duration) time.Duration { return time.Second }
		s.callFor(3*time.Minute, longTimeout, longTimeout, 200*time.Millisecond)
		time.Sleep(time.Second)
		require.Equal(t, int64(6000), s.b.Totals().Failures)
	})
}

// When the first deadline passes, the breaker does not know when the calls in flight began. Such a
// call counts only if at least the usual time was left until its own deadline.
func TestTheFirstDeadlinesOfAHangCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 45*time.Millisecond)
		defer s.group.Wait()
		s.callFor(15*time.Second, longTimeout)
		for s.b.Sampled() {
			s.callFor(10*time.Millisecond, longTimeout)
		}
		s.takes = func(time.Duration) time.Duration { return time.Hour }
		s.callFor(time.Second, time.Second)
		time.Sleep(time.Second)
		require.Equal(t, int64(95), s.b.Totals().Failures)
		require.Equal(t, int64(5), s.b.Totals().Ignored)
	})
}

func TestErrorsBeforeAShortDeadlineCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 45*time.Millisecond)
		defer s.group.Wait()
		s.callFor(time.Second, longTimeout)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(bg(), shortTimeout)
		defer cancel()
		run := func(wait time.Duration) {
			require.ErrorIs(t, s.b.Run(ctx, func(context.Context) error { time.Sleep(wait); return errDown }), errDown)
		}
		run(shortTimeout - 1)
		require.Equal(t, int64(1), s.b.Totals().Failures)
		run(1)
		require.Equal(t, int64(1), s.b.Totals().Ignored)
		late, stop := context.WithTimeout(bg(), shortTimeout)
		defer stop()
		answer := func(context.Context) (int, error) { time.Sleep(shortTimeout); return 500, nil }
		_, err := breaker.DoResult(late, s.b, answer, func(int, error) breaker.Outcome { return breaker.Failure })
		require.NoError(t, err)
		require.Equal(t, int64(2), s.b.Totals().Failures, "the service has answered")
	})
}

func TestADeadlineCountsIfNothingIsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, time.Hour)
		defer s.group.Wait()
		s.callFor(10*time.Millisecond, time.Second)
		time.Sleep(time.Minute)
		s.callFor(10*time.Millisecond, time.Second)
		time.Sleep(time.Minute)
		require.Equal(t, int64(2), s.b.Totals().Failures)
	})
}

func TestAHangOpensThoughAllDeadlinesAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 50*time.Millisecond)
		defer s.group.Wait()
		s.callFor(30*time.Second, longTimeout)
		s.callFor(15*time.Second, longTimeout, shortTimeout)
		require.Equal(t, breaker.Closed, s.b.State())
		s.takes = func(time.Duration) time.Duration { return time.Hour }
		s.callFor(9500*time.Millisecond, shortTimeout)
		require.Equal(t, breaker.Closed, s.b.State(), "no success for less than a window")
		s.callFor(11*time.Second, shortTimeout)
		require.True(t, s.b.Tripped())
	})
}

func TestProbesWithShortDeadlinesDecideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{Recovery: breaker.Off}, 50*time.Millisecond)
		defer s.group.Wait()
		s.callFor(time.Second, longTimeout)
		time.Sleep(time.Second)
		s.callFor(300*time.Millisecond, shortTimeout)
		s.b.OpenFor(time.Second)
		time.Sleep(time.Second)
		s.callFor(200*time.Millisecond, shortTimeout)
		require.Equal(t, breaker.HalfOpen, s.b.State())
		s.callFor(time.Second, longTimeout)
		require.Equal(t, breaker.Closed, s.b.State())
		s.b.OpenFor(time.Second)
		time.Sleep(time.Second)
		s.callFor(300*time.Millisecond, shortTimeout)
		require.Equal(t, breaker.HalfOpen, s.b.State(), "however many there are")
		s.callFor(time.Second, longTimeout)
		require.Equal(t, breaker.Closed, s.b.State())
	})
}

func TestAShadowIgnoresDeadlinesThatAreTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{Force: breaker.Shadow}, 50*time.Millisecond)
		defer s.group.Wait()
		s.callFor(30*time.Second, longTimeout, shortTimeout, shortTimeout)
		opened, _ := s.b.ShadowTotals()
		require.Zero(t, opened)
		s.takes = func(time.Duration) time.Duration { return time.Hour }
		s.callFor(30*time.Second, longTimeout, shortTimeout, shortTimeout)
		opened, _ = s.b.ShadowTotals()
		require.Positive(t, opened)
	})
}

func TestABreakerThatClosedStillKnowsWhatIsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 50*time.Millisecond)
		defer s.group.Wait()
		s.callFor(time.Second, longTimeout)
		s.b.Reset()
		s.callFor(400*time.Millisecond, shortTimeout)
		require.Zero(t, s.b.Totals().Failures)
	})
}

func TestTheUsualTimeFollowsAServiceWhoseCallersAreSatisfied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 5*time.Millisecond)
		defer s.group.Wait()
		s.callFor(30*time.Second, longTimeout)
		s.takes = func(time.Duration) time.Duration { return 50 * time.Millisecond }
		s.callFor(time.Minute, longTimeout)
		s.callFor(time.Minute, longTimeout, shortTimeout, shortTimeout)
		require.Empty(t, s.refused)
		require.Zero(t, s.b.Totals().Failures)
	})
}
