package breaker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// recordMinutely makes n calls with the given outcome, one per minute.
func recordMinutely(t *testing.T, b *breaker.Breaker, n int, o breaker.Outcome) {
	t.Helper()
	for range n {
		p, err := b.Allow()
		require.NoError(t, err)
		require.True(t, p.Record(bg(), nil, o))
		time.Sleep(time.Minute)
	}
}

func TestARunOfFailuresOpensHoweverFarApartTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := ""
		b := breaker.New("b", breaker.Config{Cooldown: time.Hour, OnChange: func(c breaker.Change) { reason = c.Reason }})
		recordMinutely(t, b, 1000, breaker.Success)
		recordMinutely(t, b, 9, breaker.Failure)
		recordMinutely(t, b, 2, breaker.Success)
		recordMinutely(t, b, 5, breaker.Ignored)
		recordMinutely(t, b, 2, breaker.Failure)
		require.Equal(t, breaker.Closed, b.State(), "eleven failures and two successes")
		recordMinutely(t, b, 1, breaker.Failure)
		require.Equal(t, breaker.Open, b.State())
		require.Equal(t, "12 of the last 14 calls failed, by chance less than once in 10^6 calls if 20% fail", reason)
		require.Equal(t, window.Counts{Successes: 2, Failures: 12, ConsecutiveFailures: 3}, b.Counts())
	})
}

// TestSuccessesTakeFailuresBackInACleanWindow shows that successes shorten a run of failures even
// in a clean window. A window without a failure is clean, and its successes need no verdict unless
// a run has begun.
func TestSuccessesTakeFailuresBackInACleanWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		recordMinutely(t, b, 9, breaker.Failure)
		recordMinutely(t, b, 9, breaker.Success)
		recordMinutely(t, b, 9, breaker.Failure)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestABusyBreakerNeedsALongerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 1000, succeed)
		run(t, b, 210, fail) // one fewer than 10 plus a sixth of 1,211 calls
		require.Equal(t, breaker.Closed, b.State())
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestTheDefaultRunHasAsManyFailuresAsTheRateNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		config breaker.Config
		want   int // failures one minute apart, or 0 for never
	}{
		"defaults":        {breaker.Config{}, 10},
		"a low MinCalls":  {breaker.Config{MinCalls: 2}, 10},
		"a high MinCalls": {breaker.Config{MinCalls: 100}, 50},
		"a low rate":      {breaker.Config{FailureRate: 0.1}, 9},
		"a high rate":     {breaker.Config{FailureRate: 0.9}, 18},
		"a rate of one":   {breaker.Config{FailureRate: 1}, 20},
		// 0.4¹⁶ is 4 in 10⁷
		"a rate of one, few calls":  {breaker.Config{FailureRate: 1, MinCalls: 5}, 16},
		"set":                       {breaker.Config{FailureRun: 4}, 4},
		"off":                       {breaker.Config{FailureRun: breaker.Off}, 0},
		"without a rate":            {breaker.Config{FailureRate: breaker.Off}, 0},
		"over the last calls":       {breaker.Config{LastCalls: 1000, MinCalls: 300}, 0},
		"set over the last calls":   {breaker.Config{LastCalls: 1000, MinCalls: 300, FailureRun: 4}, 4},
		"consecutive failures":      {breaker.Config{ConsecutiveFailures: 3}, 3},
		"more consecutive failures": {breaker.Config{ConsecutiveFailures: 11}, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.config.Cooldown = time.Hour
			b := breaker.New("b", c.config)
			failures := 0
			for ; failures < 200 && b.State() == breaker.Closed; failures++ {
				recordMinutely(t, b, 1, breaker.Failure)
			}
			if c.want == 0 {
				c.want = 200
			}
			require.Equal(t, c.want, failures, name)
		})
	}
}

func TestARunBeginsAnewWhenTheBreakerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, again := range map[string]func(b *breaker.Breaker){
			"Reset":             (*breaker.Breaker).Reset,
			"Force and Release": func(b *breaker.Breaker) { b.Force(breaker.ForcedClosed, ""); b.Release() },
			"a different rate": func(b *breaker.Breaker) {
				require.NoError(t, b.Reconfigure(breaker.Config{FailureRate: 0.6, FailureRun: 10}))
			},
			"off for a while": func(b *breaker.Breaker) {
				require.NoError(t, b.Reconfigure(breaker.Config{FailureRun: breaker.Off}))
				require.NoError(t, b.Reconfigure(breaker.Config{}))
			},
		} {
			b := breaker.New("b", breaker.Config{})
			recordMinutely(t, b, 9, breaker.Failure)
			again(b)
			recordMinutely(t, b, 9, breaker.Failure)
			require.Equal(t, breaker.Closed, b.State(), name)
			recordMinutely(t, b, 1, breaker.Failure)
			require.NotEqual(t, breaker.Closed, b.State(), name)
		}
		b := breaker.New("b", breaker.Config{})
		recordMinutely(t, b, 9, breaker.Failure)
		require.NoError(t, b.Reconfigure(breaker.Config{Window: time.Second}))
		recordMinutely(t, b, 1, breaker.Failure)
		require.NotEqual(t, breaker.Closed, b.State(), "another window keeps the run")
	})
}

func TestAnInvalidFailureRun(t *testing.T) {
	for _, c := range []breaker.Config{{FailureRun: -2}, {FailureRun: 100_001}, {FailureRun: 5, FailureRate: breaker.Off}} {
		require.ErrorContains(t, c.Validate(), "breaker: FailureRun is ")
	}
	require.NoError(t, breaker.Config{FailureRun: 100_000}.Validate())
	require.NoError(t, breaker.Config{FailureRun: breaker.Off, FailureRate: breaker.Off}.Validate())
}

// TestAfterARunOneCallInEightIsAProbe makes a call per minute, so that every cooldown is over.
func TestAfterARunOneCallInEightIsAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reasons []string
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off, OnChange: func(c breaker.Change) { reasons = append(reasons, c.Reason) }})
		recordMinutely(t, b, 11, breaker.Failure) // ten open it, and the next is a probe
		require.Equal(t, "failure rate 100% of 1 calls, limit 50%, of probes", reasons[len(reasons)-1])
		for range 5 {
			probed := time.Now().Add(-time.Minute)
			for range 7 {
				require.Equal(t, breaker.HalfOpen, b.State(), "the cooldown is over")
				before := b.Totals().Refused
				err := b.Check()
				var e *breaker.OpenError
				require.ErrorAs(t, err, &e)
				require.Equal(t, breaker.HalfOpen, e.State)
				require.Equal(t, probed.Add(8*time.Minute), e.Until, "eight calls of the run took that long")
				require.Equal(t, time.Until(e.Until), e.RetryAfter())
				require.ErrorContains(t, err, "is half-open and no probe is due (failure rate 100% of 1 calls")
				require.Equal(t, before+1, b.Totals().Refused)
				time.Sleep(time.Minute)
			}
			require.NoError(t, b.Check())
			recordMinutely(t, b, 1, breaker.Failure)
		}
		for range 7 {
			requireRefused(t, b)
		}
		time.Sleep(5 * time.Second)
		recordMinutely(t, b, 3, breaker.Success)
		require.Equal(t, breaker.Closed, b.State())

		recordMinutely(t, b, 10, breaker.Failure)
		recordMinutely(t, b, 1, breaker.Success)
		recordMinutely(t, b, 1, breaker.Failure)
		recordMinutely(t, b, 1, breaker.Success)
		require.Equal(t, breaker.Closed, b.State(), "a failure after a success is judged by the rate")
	})
}

// A caller that is alone and waits as it is told is refused once per outage, however rare its calls
// are.
func TestRetryAfterOfALoneCallerIsTheTimeAfterWhichItsCallPasses(t *testing.T) {
	for _, gap := range []time.Duration{time.Second, 20 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := breaker.New("b", breaker.Config{})
			for range 20 {
				err := b.Run(bg(), fail)
				if refusal := new(breaker.OpenError); errors.As(err, &refusal) {
					wait := refusal.RetryAfter()
					require.LessOrEqual(t, wait, 10*time.Minute)
					time.Sleep(wait)
					require.NotErrorIs(t, b.Run(bg(), fail), breaker.ErrOpen, "it waited %v", wait)
				}
				time.Sleep(gap)
			}
			require.Equal(t, gap < 10*time.Minute, b.Totals().Refused > 0)
			if err := b.Run(bg(), succeed); err != nil {
				time.Sleep(err.(*breaker.OpenError).RetryAfter()) //nolint:errorlint // it is a refusal
				require.NoError(t, b.Run(bg(), succeed))
			}
			require.NoError(t, b.Run(bg(), succeed))
		})
	}
}

func TestARateSparesNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off, MinCalls: 1, Probes: 1})
		// the first opens it, and each of the others is a probe
		recordMinutely(t, b, 10, breaker.Failure)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
}
