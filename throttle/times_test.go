package throttle_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

func TestAThrottleOfThePackageWorksOnTheClockOfATest(t *testing.T) {
	th := throttle.New("t", throttle.Config{MinCalls: 5}).SetRandom(alwaysBelow, time.Second)
	synctest.Test(t, func(t *testing.T) {
		for range 5 {
			require.ErrorIs(t, th.Run(bg(), fail), errDown)
		}
		require.ErrorIs(t, th.Run(bg(), fail), throttle.ErrRefused)
		time.Sleep(time.Second)
		require.ErrorIs(t, th.Run(bg(), fail), errDown, "one is allowed each second")
		require.ErrorIs(t, th.Run(bg(), fail), throttle.ErrRefused)
		time.Sleep(10 * time.Second)
		require.NoError(t, th.Run(bg(), succeed))
	})
}

func TestAStaleTimeIsNotTakenForNow(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), t0.Add(-time.Hour), t0, t0.Add(999 * time.Millisecond)} {
		th := throttle.NewAt("t", throttle.Config{MinCalls: 1}, t0).SetRandom(alwaysBelow, time.Second)
		p, err := th.AllowAt(t0)
		require.NoError(t, err)
		require.True(t, p.RecordAt(t0, window.Failure))
		_, err = th.AllowAt(t0.Add(time.Second)) // the call that is allowed once per second
		require.NoError(t, err)
		_, err = th.AllowAt(at)
		require.ErrorIs(t, err, throttle.ErrRefused, at)
		require.Equal(t, int64(1), th.CountsAt(t0).Failures, at)
		_, err = th.AllowAt(t0.Add(1999 * time.Millisecond))
		require.ErrorIs(t, err, throttle.ErrRefused, at)
	}
}

func TestTheSeriesBeganWhenTheThrottleDid(t *testing.T) {
	for s := range throttle.NewAt("t", throttle.Config{}, t0).Observe {
		require.True(t, s.Created.Equal(t0), "%s: %v", s.Instrument.Name, s.Created)
	}
}

func TestConfigsAtTheirBoundsAreValid(t *testing.T) {
	for _, c := range []throttle.Config{{K: 1}, {K: math.MaxFloat64}, {MaxRefusal: 1}, {MinCalls: 1}, {Window: time.Millisecond}} {
		require.NoError(t, c.Validate(), "%+v", c)
	}
}
