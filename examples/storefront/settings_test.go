package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func newTestSettings(t *testing.T, run time.Duration) *settings {
	t.Helper()
	s, err := newSettings(run, nil, alert.Func("none", func(context.Context, alert.Alert) error { return nil }))
	require.NoError(t, err)
	t.Cleanup(s.remove)
	return s
}

func TestAChangedRateApplies(t *testing.T) {
	s := newTestSettings(t, time.Minute)
	require.Equal(t, 25, s.Gate("payments").Limiter().Take(0).Remaining)

	from, err := s.changeRate("1/s")
	require.NoError(t, err)
	require.Equal(t, "250/s", from)
	gate := s.Gate("payments")
	for range 25 {
		gate.Limiter().Take(1)
	}
	require.InDelta(t, time.Second, gate.Limiter().Take(1).RetryAfter, float64(time.Second/2), "by the new rate")
}

func TestAFileThatCannotBeAppliedChangesNothing(t *testing.T) {
	s := newTestSettings(t, time.Minute)
	for text, want := range map[string]string{
		"gates: {payments: {rate: 5/s, burst: -1}}": "burst is -1",
		"gates: {payments: {}}":                     "the file has no rate",
	} {
		require.NoError(t, s.write(text))
		_, err := s.changeRate("1/s")
		require.ErrorContains(t, err, want)
	}
	s.remove()
	_, err := s.changeRate("1/s")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, 25, s.Gate("payments").Limiter().Take(0).Remaining)
}
