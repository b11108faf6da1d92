package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnoverEstimatesWhenASlotIsReleased(t *testing.T) {
	const ms = time.Millisecond
	var turnover turnover
	for _, step := range []struct {
		at    time.Duration
		ended int64
		place float64
		want  time.Duration
		why   string
	}{
		{0, 0, 1, 0, "the limiter was just made"},
		{50 * ms, 0, 1, 50 * ms, "no call has ended for 50ms"},
		{50 * ms, 5, 1, 10 * ms, "one per 10ms"},
		{50 * ms, 5, 3, 30 * ms, "the third place"},
		{100 * ms, 20, 1, 5 * ms, "20 calls in 100ms"},
		{150 * ms, 20, 1, 5 * ms, "the last span counts until the next is long enough"},
		{200 * ms, 30, 1, 10 * ms, "10 calls in 100ms"},
		{150 * ms, 30, 1, 10 * ms, "a caller that read the clock earlier"},
		{299 * ms, 35, 1, 10 * ms, "that did not begin the span again"},
		{500 * ms, 30, 1, 300 * ms, "no call has ended for 300ms"},
		{500 * ms, 30, 4, time.Second, "the most"},
		{10 * time.Hour, 30, 1, time.Second, "the most"},
		{10 * time.Hour, 31, 1 << 40, time.Second, "the most"},
	} {
		require.Equal(t, step.want, turnover.untilFree(step.at, step.ended, step.place), step.why)
	}
}

// Slots are rarely released while few are in use. That says nothing about when a full limiter has a
// free slot.
func TestTurnoverCountsOnlyWhileCallersWait(t *testing.T) {
	const ms = time.Millisecond
	var turnover turnover
	turnover.resume(10*time.Second, 10)
	require.Equal(t, time.Second, turnover.untilFree(10*time.Second, 10, 1), "nothing better is known")
	require.Equal(t, 5*ms, turnover.untilFree(10*time.Second+50*ms, 20, 1), "ten calls suffice")
	turnover.pause(10*time.Second+60*ms, 22)
	turnover.pause(time.Minute, 30) // no caller waits any more, again
	require.Equal(t, 5*ms, turnover.untilFree(time.Hour, 40, 1), "60ms for 12 calls")
	turnover.resume(2*time.Hour, 50)
	require.Equal(t, 10*ms, turnover.untilFree(2*time.Hour+40*ms, 48, 1), "100ms for 10 calls")
	require.Equal(t, 10*ms, turnover.untilFree(2*time.Hour+80*ms, 49, 1), "the last span counts")
}

func TestTurnoverWithAClockThatWentBack(t *testing.T) {
	const ms = time.Millisecond
	var turnover turnover
	require.Equal(t, 10*ms, turnover.untilFree(time.Second, 100, 1))
	require.Equal(t, 10*ms, turnover.untilFree(-time.Hour, 110, 1))
	require.Equal(t, 20*ms, turnover.untilFree(-time.Hour+200*ms, 120, 1))
}
