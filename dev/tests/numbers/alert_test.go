package numbers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/window"
)

// alertsTable returns the probability that the rate is above 5 % by chance at one evaluation, if
// 1 % of the calls fail.
func alertsTable() string {
	table := headerRow("MinCalls", "bad calls that it takes", "by chance, where 1 % fail")
	for _, n := range []int{20, 50, 100, 200, 500} {
		over := 5*n/100 + 1 // Above excludes the threshold
		table += row(n, over, formatProbability(atLeast(over, n, 0.01)))
	}
	return table
}

type service struct{ calls window.Totals }

func (s *service) Totals() window.Totals { return s.calls }

// simulateOutage evaluates rules every 5 s over 100 calls per second, of which a share fails during
// the outage. It returns when the first rule fires and when all have resolved, since the start of
// the outage.
func simulateOutage(share float64, lasts time.Duration, rules func(*service) []alert.Rule) (fires, resolves time.Duration) {
	const interval, warm = 5 * time.Second, 7 * time.Hour
	s := &service{}
	m := alert.NewMonitor(alert.Config{Interval: interval}, rules(s)...)
	for at := time.Duration(0); at < warm+lasts+12*time.Hour; at += interval {
		if at > warm && at <= warm+lasts {
			s.calls.Failures += int64(500 * share)
			s.calls.Successes += int64(500 * (1 - share))
		} else {
			s.calls.Successes += 500
		}
		m.Evaluate(t0.Add(at))
		firing := false
		for _, a := range m.Alerts() {
			firing = firing || a.State == alert.Firing
		}
		switch {
		case firing && fires == 0:
			fires = at - warm
		case fires != 0 && !firing:
			return fires, at - warm
		}
	}
	return fires, -1
}

func TestWhenAnAlertFiresAndResolves(t *testing.T) {
	const lasts = 10 * time.Minute
	fires, resolves := simulateOutage(1, lasts, func(s *service) []alert.Rule {
		return []alert.Rule{{
			Name: "fails", Value: alert.FailureRate(s, 5*time.Minute), When: alert.Above(0.05),
			MinCalls: 20, For: 30 * time.Second, KeepFiring: time.Minute,
		}}
	})
	require.InDelta(t, (15 + 30), fires.Seconds(), 10)
	require.InDelta(t, (285 + 60), (resolves - lasts).Seconds(), 15)
}

func TestWhenBurnRatesFireAndResolve(t *testing.T) {
	rules := func(s *service) []alert.Rule { return alert.BurnRateRules("payments", s, 0.999) }
	cases := map[string]struct {
		share             float64
		lasts             time.Duration
		fires, afterwards float64 // seconds
	}{
		"all fail":              {1, 10 * time.Minute, 14.4 * 0.001 / 1 * 3600, (1 - 6*0.001/1) * 1800},
		"one in ten fails":      {0.1, time.Hour, 14.4 * 0.001 / 0.1 * 3600, (1 - 6*0.001/0.1) * 1800},
		"one in a hundred does": {0.01, 5 * time.Hour, 6 * 0.001 / 0.01 * 21600, (1 - 6*0.001/0.01) * 1800},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fires, resolves := simulateOutage(c.share, c.lasts, rules)
			require.InDelta(t, c.fires, fires.Seconds(), 10)
			require.InDelta(t, c.afterwards, (resolves - c.lasts).Seconds(), 45)
		})
	}
}
