package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnoverEstimatesWhenASlotIsReleased(t *testing.T) {
	const ms = time.Millisecond
	var to turnover
	for _, step := range []struct {
		at    time.Duration
		ended int64
		place int64
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
		{500 * ms, 30, 1, 300 * ms, "no call has ended for 300ms"},
		{500 * ms, 30, 4, time.Second, "the most"},
		{10 * time.Hour, 30, 1, time.Second, "the most"},
		{10 * time.Hour, 31, 1 << 40, time.Second, "the most"},
	} {
		require.Equal(t, step.want, to.untilFree(step.at, step.ended, step.place), step.why)
	}
}
