package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat/view"
)

// report is what the live page reads of a breaker. The incident is zero if none lasts.
type report struct {
	view.Status
	view.Incident

	Past []view.Incident // those that have ended
}

func reportOf(b *breaker.Breaker) (r report) {
	for v := range b.Views {
		r.Status = v.(view.Guard).Status()
	}
	r.Past = r.Incidents
	if i := r.Lasts(); i != nil {
		r.Incident, r.Past = *i, r.Incidents[:len(r.Incidents)-1]
	}
	return r
}

func makeFailingCall(b *breaker.Breaker) {
	_ = b.Run(context.Background(), func(context.Context) error { return errors.New("no route to host") })
}

func makeSuccessfulCall(b *breaker.Breaker) {
	_ = b.Run(context.Background(), func(context.Context) error { return nil })
}

var quickToOpenConfig = breaker.Config{MinCalls: 1, Cooldown: 5 * time.Second, Probes: 1, Recovery: breaker.Off}

func TestAnIncidentBeginsAtTheFirstOpeningAndEndsWhenTheBreakerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", quickToOpenConfig)
		require.Zero(t, reportOf(b).Openings)

		began := time.Now()
		for range 4 { // each failed probe opens it again
			makeFailingCall(b)
			time.Sleep(5 * time.Second)
		}
		r := reportOf(b)
		require.Equal(t, began, r.Began, "not the last look")
		require.Equal(t, 4, r.Openings)
		require.Equal(t, "failure rate 100% of 1 calls, limit 50%", r.Cause)
		require.Equal(t, "no route to host", r.Failures[0].Message)
		require.Empty(t, r.Past)

		makeSuccessfulCall(b)
		r = reportOf(b)
		require.Zero(t, r.Openings)
		require.Equal(t, []view.Incident{{Began: began, Ended: began.Add(20 * time.Second), Openings: 4, Cause: "failure rate 100% of 1 calls, limit 50%"}}, r.Past)
	})
}

func TestABreakerRemembersItsLastEightIncidents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", quickToOpenConfig)
		var began []time.Time
		for range 11 {
			began = append(began, time.Now())
			makeFailingCall(b)
			time.Sleep(5 * time.Second)
			makeSuccessfulCall(b)
		}
		past := reportOf(b).Past
		require.Len(t, past, 8)
		for i, p := range past {
			require.Equal(t, began[3+i], p.Began)
			require.Equal(t, 5*time.Second, p.Ended.Sub(p.Began))
		}
	})
}

func TestAnOverrideThatRefusesIsAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", quickToOpenConfig)
		began := time.Now()
		b.Force(breaker.ForcedOpen, "")
		time.Sleep(time.Minute)
		require.Equal(t, began, reportOf(b).Began)
		b.Release()
		require.Equal(t, time.Minute, reportOf(b).Past[0].Ended.Sub(began))

		c := quickToOpenConfig
		c.Force = breaker.ForcedOpen
		first := time.Now()
		opened := breaker.New("late", c)
		time.Sleep(time.Hour)
		require.Equal(t, first, reportOf(opened).Began)
		require.Equal(t, 1, reportOf(opened).Openings)
	})
}

func TestAnIncidentAfterAnOverrideSaysWhyTheBreakerOpened(t *testing.T) {
	for _, s := range []breaker.State{breaker.ForcedClosed, breaker.Disabled, breaker.Shadow} {
		synctest.Test(t, func(t *testing.T) {
			b := breaker.New("bank", quickToOpenConfig)
			makeFailingCall(b)
			why := reportOf(b).Cause
			require.Contains(t, why, "failure rate")
			b.Force(s, "")
			require.Zero(t, reportOf(b).Openings)
			b.Release()
			require.Equal(t, why, reportOf(b).Cause)
			b.Force(s, "")
			time.Sleep(time.Hour)
			b.Release()
			require.Equal(t, breaker.HalfOpen, b.State())
			require.Equal(t, why, reportOf(b).Cause, "a breaker whose cooldown is over")
			b.Force(s, "")
			b.Force(breaker.ForcedOpen, "")
			require.Equal(t, "forced", reportOf(b).Cause)
			b.Force(s, "")
			b.OpenFor(time.Minute)
			b.Release()
			require.Equal(t, "opened by OpenFor for 1m0s", reportOf(b).Cause)
		})
	}
}

func TestReportsAreConsistentDuringTransitions(t *testing.T) {
	b := breaker.New("bank", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1, Recovery: breaker.Off})
	var callers, readers sync.WaitGroup
	var done atomic.Bool
	var faults atomic.Pointer[string]
	for n := range 3 {
		callers.Go(func() {
			for i := range 300 {
				makeFailingCall(b)
				makeSuccessfulCall(b)
				if i%10 == n {
					b.Force(breaker.ForcedOpen, "")
					b.Release()
					b.Reset()
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				if fault := inconsistency(reportOf(b)); fault != "" {
					faults.Store(&fault)
				}
			}
		})
	}
	callers.Wait()
	done.Store(true)
	readers.Wait()
	require.Nil(t, faults.Load())
	b.Reset()
	require.Zero(t, reportOf(b).Openings)
	require.Len(t, reportOf(b).Past, 8)
}

// inconsistency returns what is wrong in a report, or "".
func inconsistency(r report) string {
	if (r.Openings > 0) == r.Began.IsZero() || len(r.Past) > 8 {
		return fmt.Sprintf("%+v", r)
	}
	for i, p := range r.Past {
		if p.Openings < 1 || p.Ended.Before(p.Began) || i > 0 && p.Began.Before(r.Past[i-1].Ended) {
			return fmt.Sprintf("incident %d of %+v", i, r.Past)
		}
	}
	return ""
}

func TestReportOfAGroupHasTheKeysWithSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxSeries: 2, Breaker: quickToOpenConfig})
		makeFailingCall(g.Get("a"))
		makeSuccessfulCall(g.Get("b"))
		makeSuccessfulCall(g.Get("c"))
		for range g.Observe {
		}
		found := map[string]int{}
		for v := range g.Views {
			for key, m := range v.(view.Group).Shown() {
				s := m.(view.Guard).Status()
				found[key] = len(s.Incidents)
			}
		}
		require.Equal(t, map[string]int{"a": 1, "b": 0}, found)
	})
}

func TestReportShowsTheSettingsInForce(t *testing.T) {
	b := breaker.New("bank", breaker.Config{FailureRate: 0.25, SlowCall: time.Second, Recovery: breaker.Off})
	settings := func() map[string]string {
		all := map[string]string{}
		for _, s := range reportOf(b).Config.Settings() {
			all[s.Name] = s.Value
		}
		return all
	}
	s := settings()
	require.Equal(t, "25 %", s["FailureRate"])
	require.Equal(t, "1s", s["SlowCall"])
	require.Equal(t, "50 %", s["SlowRate"])
	require.Equal(t, "off", s["Recovery"])
	require.Equal(t, "off", s["ConsecutiveFailures"])
	require.Equal(t, "10s in 10 buckets", s["Window"])

	require.NoError(t, b.Reconfigure(breaker.Config{LastCalls: 50}))
	s = settings()
	require.Equal(t, "50", s["LastCalls"])
	require.NotContains(t, s, "Window")
	require.Equal(t, "off", s["SlowCall"])
}
