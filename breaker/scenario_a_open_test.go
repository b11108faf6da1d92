package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestScenarioA16A17A18_Open(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second}
	s := runScript(t, c, "0 AAA ... closed", "0 EEEEE ..... open 100 0 5 5 0", "4.999999999 S r open", "4.999999999 gb !! open")
	require.Len(t, s.changes(), 1, "a late failure is no news")
	s.do("5 - - half_open -1 0 0 0 0", "5 g ! half_open")
}

func TestScenarioA23_CooldownsGrowAndJitter(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Probes: 1, Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 5 * time.Second, CooldownJitter: 0.5}
	shorter := 0
	for range 50 {
		s := runScript(t, c, "0 E . open")
		for _, longest := range []float64{1, 2, 4, 5, 5} {
			wait := s.b.StatsAt(s.now).Since
			_, err := s.b.AllowAt(s.now)
			var e *breaker.OpenError
			require.ErrorAs(t, err, &e)
			cooldown := e.Until.Sub(wait).Seconds()
			require.LessOrEqual(t, cooldown, longest)
			require.GreaterOrEqual(t, cooldown, longest/2)
			if cooldown < longest*0.9 {
				shorter++
			}
			s.now = e.Until
			s.call('E')
		}
	}
	require.Greater(t, shorter, 50, "jitter spreads the cooldowns: of 250")
}

func TestScenarioA24_TheServicesOwnRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{MinCalls: 3, Cooldown: 5 * time.Second, CooldownJitter: breaker.Off})
		run(t, b, 1, failWith(fmt.Errorf("503: %w", waitError{30 * time.Second})))
		run(t, b, 2, fail)
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(29 * time.Second)
		requireRefused(t, b)
		time.Sleep(time.Second)
		require.Equal(t, breaker.HalfOpen, b.State(), "asked for before it opened")

		for range 3 { // set by the caller, and bounded by MaxRetryAfter
			p, err := b.Allow()
			require.NoError(t, err)
			p.SetRetryAfter(time.Hour)
			require.True(t, p.Record(breaker.Failure))
		}
		time.Sleep(time.Minute - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())

		run(t, b, 3, failWith(waitError{-time.Hour})) // shorter than the cooldown, or nonsense
		time.Sleep(5 * time.Second)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, MaxRetryAfter: breaker.Off})
	run(t, b, 1, failWith(waitError{time.Hour}))
	require.Equal(t, breaker.HalfOpen, b.State(), "not listened to")
}

func TestScenarioA25A26A27_ProbesAndTheirVerdict(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 3, Cooldown: 5 * time.Second}
	runScript(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 ggg ... closed")
	runScript(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 gbb ... open")
	c.FailureRate, c.ConsecutiveFailures = breaker.Off, 5
	runScript(t, c, "0 EEEEE ..... open", "5 SSE ... open") // the first failed probe opens it
}

func TestScenarioA28_IgnoredProbesWithoutEnd(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 2}, "0 EEEEE ..... open")
	for range 100 {
		s.do("5 I . half_open -1 0 0 0 0")
	}
	s.do("5 SS .. closed")
}

func TestScenarioA31_ARefusedCallHoldsNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Probes: 1, Cooldown: breaker.Off})
	run(t, b, 1, fail)
	for range 10 {
		require.NoError(t, b.Check(), "looking takes nothing")
	}
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Closed, b.State())
}

// A service that answers "bad request" works. Classify decides whether such an answer closes a
// half-open breaker, and Accept makes it a success.
func TestScenarioA32_AProbeWithABadRequest(t *testing.T) {
	errBadRequest := errors.New("bad request")
	for _, c := range []struct {
		classify func(error) breaker.Outcome
		want     breaker.State
	}{
		{breaker.Accept(errBadRequest), breaker.Closed},
		{breaker.Ignore(errBadRequest), breaker.HalfOpen},
		{breaker.DefaultClassify, breaker.Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 1, Classify: c.classify})
			run(t, b, 1, failWith(errBadRequest))
			require.Equal(t, c.want, b.State())
		})
	}
}

func TestScenarioA33A34_BadResultsAndWrappedErrors(t *testing.T) {
	type response struct{ status int }
	byStatus := func(r response, err error) breaker.Outcome {
		if r.status >= 500 {
			return breaker.Failure
		}
		return breaker.DefaultClassify(err)
	}
	b := breaker.New("b", breaker.Config{Classify: breaker.Accept(io.EOF)})
	for _, status := range []int{200, 404, 503} {
		r, err := breaker.DoResult(bg(), b, func(context.Context) (response, error) { return response{status}, nil }, byStatus)
		require.NoError(t, err)
		require.Equal(t, status, r.status)
	}
	run(t, b, 1, func(context.Context) error { return fmt.Errorf("read: %w", errors.Join(errDown, io.EOF)) })
	require.Equal(t, window.Counts{Successes: 3, Failures: 1}, withoutStreak(b.Counts()))
	require.Panics(t, func() { _, _ = breaker.DoResult(bg(), b, func(context.Context) (int, error) { return 0, nil }, nil) })
}
