package inflight_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

func numberText(n int) string { return strconv.Itoa(n) }

// metricsByOutcome returns the metrics of a source by instrument and outcome.
func metricsByOutcome(t *testing.T, s stat.Source) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for series, v := range s.Observe {
		require.Equal(t, "logins", series.Values[0])
		all[strings.Join(append([]string{series.Instrument.Name}, series.Values[1:]...), " ")] = v
	}
	return all
}

func newNamedLimiter(c inflight.Config) *inflight.Limiter {
	c.Name = "logins"
	return inflight.New(c)
}

func TestALimiterWithANameCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamedLimiter(inflight.Config{Limit: 2, MaxWaiters: 2})
		one, ok := tryAcquire(l)
		require.True(t, ok)
		two, err := l.Acquire(t.Context())
		require.NoError(t, err)
		_, ok = tryAcquire(l)
		require.False(t, ok)

		var three inflight.Slot
		go func() { three, _ = l.Acquire(t.Context()) }()
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, err = l.Acquire(ctx) }()
		synctest.Wait()
		require.EqualValues(t, 2, l.Stats().Waiting)

		_, full := l.Acquire(t.Context())
		require.ErrorIs(t, full, inflight.ErrFull)
		require.EqualError(t, full, `inflight limiter "logins" and its queue are full (limit 2, MaxWaiters 2), retry after 1ms`)

		time.Sleep(3 * time.Second)
		leave()
		synctest.Wait()
		require.ErrorIs(t, err, context.Canceled)
		one.Done(ctx, nil)
		one.Done(ctx, nil)
		synctest.Wait()
		require.Equal(t, 2, l.InFlight())
		two.Done(ctx, nil)
		three.Done(ctx, nil)
		require.Zero(t, l.InFlight())
		_, err = l.Acquire(ctx)
		require.Equal(t, context.Canceled, err, "not counted, because the context was done before")

		requireCounts(t, l)
	})
}

// requireCounts fails unless l says what TestALimiterWithANameCounts did with it.
func requireCounts(t *testing.T, l *inflight.Limiter) {
	t.Helper()
	require.Equal(t, limiter.Stats{Allowed: 2, Waited: 1, Refused: 2, Cancelled: 1, Near: 1}, l.Stats())
	for _, waits := range l.Histograms {
		require.EqualValues(t, 1, waits.Count())
		require.Equal(t, 3.0, waits.Sum)
	}
	require.Equal(t, map[string]float64{
		"weir.limiter.requests allowed": 2, "weir.limiter.requests waited": 1,
		"weir.limiter.requests refused": 2, "weir.limiter.requests cancelled": 1,
		"weir.limiter.near_limit": 1, "weir.limiter.waiting": 0, "weir.inflight.call.active": 0, "weir.inflight.limit": 2,
		"weir.limiter.queue_full": 1,
	}, metricsByOutcome(t, l))
}

func TestALoweredLimitIsObserved(t *testing.T) {
	l := newNamedLimiter(inflight.Config{Limit: 3})
	for range 3 {
		_, ok := tryAcquire(l)
		require.True(t, ok)
	}
	require.NoError(t, l.SetLimit(1))
	figures := metricsByOutcome(t, l)
	require.EqualValues(t, 3, figures["weir.inflight.call.active"])
	require.EqualValues(t, 1, figures["weir.inflight.limit"])
}

func TestShadowMode(t *testing.T) {
	l := newNamedLimiter(inflight.Config{Limit: 1, Shadow: true})
	slot, ok := tryAcquire(l)
	require.True(t, ok)
	none, ok := tryAcquire(l)
	require.True(t, ok)
	none.Done(t.Context(), nil)
	require.Equal(t, 1, l.InFlight(), "a call without a slot releases none")
	none, err := l.Acquire(t.Context())
	require.NoError(t, err, "in shadow mode no caller waits")
	none.Done(t.Context(), nil)
	called := false
	require.NoError(t, l.Run(t.Context(), func(context.Context) error { called = true; return nil }))
	require.True(t, called)
	slot.Done(t.Context(), nil)
	require.Zero(t, l.InFlight())
	require.Equal(t, limiter.Stats{Allowed: 1, Shadowed: 3, Near: 1}, l.Stats())
	require.EqualValues(t, 3, metricsByOutcome(t, l)["weir.limiter.requests shadowed"])
}

func TestALimiterWithoutANameCountsNothing(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 1})
	slot, ok := tryAcquire(l)
	require.True(t, ok)
	_, ok = tryAcquire(l)
	require.False(t, ok)
	slot.Done(t.Context(), nil)
	require.Empty(t, l.Name())
	require.Zero(t, l.Stats())
	for range l.Observe {
		t.Error("a limiter without a name has no metrics")
	}
	for range l.Histograms {
		t.Error("a limiter without a name has no histograms")
	}
}
