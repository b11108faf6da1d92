package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

func TestScheduleScalesWithTheRun(t *testing.T) {
	steps := []struct {
		share float64
		want  string
	}{
		{0, "healthy"},
		{0.11, "healthy"},
		{0.12, "rush"},
		{0.22, "failing"},
		{0.42, "hanging"},
		{0.579, "hanging"},
		{0.58, "recovered"},
		{0.82, "limited"},
		{1.5, "limited"},
	}
	for _, run := range []time.Duration{100 * time.Millisecond, 10 * time.Second, time.Hour} {
		day := newSchedule(run)
		for _, s := range steps {
			at := time.Duration(s.share * float64(run))
			require.Equalf(t, s.want, day.at(at).name, "at %v of %v", at, run)
		}
	}
}

func TestBegunReturnsThePhasesSoFar(t *testing.T) {
	day := newSchedule(10 * time.Second)

	require.Len(t, day.begunPhases(0), 1)
	require.Len(t, day.begunPhases(10*time.Second), 6)
	require.Equal(t, event{at: 2200 * time.Millisecond, text: "failing: the service fails every other call"},
		day.begunPhases(3 * time.Second)[2])
}

func TestArrivalsFollowTheDemand(t *testing.T) {
	const run = 10 * time.Second
	arriving, all := arrivals{day: newSchedule(run)}, 0
	for at := time.Duration(0); at <= run; at += 7 * time.Millisecond {
		all += arriving.next(at)
	}

	require.InDelta(t, 200*9+500*1, all, 10)
}

func TestArrivalsSkipALongPause(t *testing.T) {
	arriving := arrivals{day: newSchedule(time.Hour)}

	require.Equal(t, 20, arriving.next(time.Minute), "200 per second for at most 100 ms")
	require.Equal(t, 1, arriving.next(time.Minute+5*time.Millisecond))
}

func TestPaceIsAtMostAMinute(t *testing.T) {
	require.Equal(t, configText(time.Second), configText(time.Millisecond))
	require.Equal(t, configText(time.Minute), configText(time.Hour))
	require.NotEqual(t, configText(time.Second), configText(time.Minute))
	require.Equal(t, standardConfig, configText(10*time.Second))
	require.Contains(t, configText(25*time.Second), "cooldown: 1.25s, recovery: 625ms")
}

func TestSettingsAreValidForEveryRun(t *testing.T) {
	for _, run := range []time.Duration{time.Nanosecond, time.Second, 10 * time.Second, 24 * time.Hour} {
		_, err := weirconfig.Parse("weir.yaml", []byte(configText(run)))
		require.NoErrorf(t, err, "a run of %v", run)
		require.Less(t, deadline(run), hangTime)
	}
}
