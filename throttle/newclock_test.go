package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// A throttle is a package variable that is used with the real clock, then in two bubbles, each with
// a clock that begins in the year 2000, and then with the real clock again. Each time it begins as
// a new throttle does, and its totals stay.
func TestAThrottleStartsAgainWithEachClock(t *testing.T) {
	for _, first := range []string{"a call", "a reading"} {
		th := throttle.New("t", throttle.Config{Window: time.Minute}).SetRandom(alwaysBelow, time.Second)
		made, begunBefore := int64(0), new(throttle.Permit)
		begin := func(clock string) *throttle.Permit {
			p, err := th.Allow()
			require.NoError(t, err, clock)
			return &p
		}
		use := func(clock string) {
			if first == "a reading" {
				require.Zero(t, th.RefusalRate(), clock)
				require.Zero(t, th.Counts().Calls(), clock)
			}
			for range 20 {
				p := begin(clock)
				p.Record(window.Failure)
			}
			made += 20
			require.Equal(t, made, th.Totals().Failures, clock)
			require.Equal(t, int64(20), th.Counts().Failures, clock)
		}
		inBubble := func(t *testing.T) {
			use("in a bubble")
			_, err := th.Allow()
			require.ErrorIs(t, err, throttle.ErrRefused, "in a bubble")
			begunBefore.Record(window.Ignored)
			time.Sleep(time.Second)
			begunBefore = begin("a second later one call is allowed")
			_, err = th.Allow()
			require.ErrorIs(t, err, throttle.ErrRefused)
			time.Sleep(time.Hour)
			require.Zero(t, th.RefusalRate(), "an hour later")
			use("an hour later")
		}
		begunBefore = begin("the real clock")
		use("the real clock")
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		use("the real clock again")
	}
}

// A window that is replaced in the new clock begins there too.
func TestAThrottleReconfiguredInABubble(t *testing.T) {
	th := throttle.New("t", throttle.Config{}).SetRandom(alwaysBelow, infiniteInterval)
	p, err := th.Allow()
	require.NoError(t, err)
	p.Record(window.Failure)
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, th.Reconfigure(throttle.Config{Window: time.Minute, MinCalls: 1}))
		p, err := th.Allow()
		require.NoError(t, err)
		p.Record(window.Failure)
		_, err = th.Allow()
		require.ErrorIs(t, err, throttle.ErrRefused)
		time.Sleep(time.Minute)
		_, err = th.Allow()
		require.NoError(t, err)
	})
}
