package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestSalesCountEachOutcomeOnce(t *testing.T) {
	s := &shop{customers: newShop(schedule{}, nil).customers}
	for _, err := range []error{
		nil,
		&breaker.OpenError{Name: "payments"},
		fmt.Errorf("no luck: %w", &limiter.LimitedError{}),
		errors.New("503"),
		context.DeadlineExceeded,
	} {
		s.customers.Add(1)
		s.sales.count(err)
	}

	got := newSummary(s, transitionCounts{breakerOpened: 1})

	require.Equal(t, summary{Calls: 5, Succeeded: 1, Failed: 2, RefusedOpen: 1, RefusedLimited: 1, BreakerOpened: 1}, got)
	require.True(t, got.addsUp())
	s.customers.Add(1)
	require.False(t, newSummary(s, transitionCounts{}).addsUp(), "one call has no outcome")
}

func TestSummaryIsOneLineOfJSON(t *testing.T) {
	require.Equal(t, `{"calls":1,"succeeded":2,"failed":3,"refused_open":4,"refused_limited":5,"breaker_opened":6,`+
		`"breaker_closed":7,"alerts_fired":8,"alerts_resolved":9,"otel_exports":10,"prometheus_series":11}`,
		summary{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.String())
}

func TestMissingNamesZeroTotals(t *testing.T) {
	require.Empty(t, summary{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.missing())
	require.Equal(t, []string{"alerts_resolved", "failed"}, summary{1, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11}.missing())
}

func TestJournalCountsTransitionsAndRecordsEvents(t *testing.T) {
	start := time.Now()
	j := &journal{start: start}
	in := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for i, c := range []breaker.Change{
		{From: breaker.Closed, To: breaker.Open, Reason: "half fail"},
		{From: breaker.Open, To: breaker.HalfOpen},
		{From: breaker.HalfOpen, To: breaker.Open},
		{From: breaker.Open, To: breaker.HalfOpen},
		{From: breaker.HalfOpen, To: breaker.Closed, Reason: "all well"},
	} {
		c.At = in(2 * i)
		j.changed(c)
	}
	firing := alert.Alert{State: alert.Firing, Summary: "too many", StartsAt: in(3)}
	resolved := alert.Alert{State: alert.Resolved, Summary: "few", StartsAt: in(3), EndsAt: in(9)}
	require.NoError(t, j.alerted(t.Context(), firing))
	require.NoError(t, j.alerted(t.Context(), resolved))

	events, seen := j.read()

	require.Equal(t, transitionCounts{breakerOpened: 2, breakerClosed: 1, alertsFired: 1, alertsResolved: 1}, seen)
	require.Equal(t, []event{
		{0, "breaker closed to open: half fail"},
		{3 * time.Second, "alert firing: too many"},
		{8 * time.Second, "breaker half_open to closed: all well"},
		{9 * time.Second, "alert resolved: few"},
	}, inOrder(events))
}
