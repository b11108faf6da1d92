package throttle_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

func TestThrottleForgetsWhatIsAsOldAsItsWindow(t *testing.T) {
	th := throttle.NewAt("t", throttle.Config{Window: 10 * time.Second}, t0)
	recordResults(t, th, t0, 0, 1)
	require.EqualValues(t, 1, th.CountsAt(timeAfter(10*time.Second-1)).Failures)
	require.Zero(t, th.CountsAt(timeAfter(10*time.Second)).Failures)
}

func TestThrottleIgnoresACallWhoseClassifierPanics(t *testing.T) {
	th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome { panic("odd") }})
	require.PanicsWithValue(t, "odd", func() { _ = th.Run(bg(), succeed) })
	require.Equal(t, window.Totals{Ignored: 1}, th.Totals())
	require.PanicsWithValue(t, "odd", func() {
		_, _ = throttle.Do(bg(), th, func(context.Context) (int, error) { return 7, nil })
	})
	require.Equal(t, window.Totals{Ignored: 2}, th.Totals())
}

// A call whose probability of a refusal is p is refused if a random number from [0, 1) is below p.
func TestThrottleRefusesWhereTheRandomNumberIsBelowTheProbability(t *testing.T) {
	for number, refuses := range map[float64]bool{0: true, math.Nextafter(0.5, 0): true, 0.5: false, 0.9: false} {
		th := throttle.NewAt("t", throttle.Config{MinCalls: 1}, t0).SetRandom(func() float64 { return number }, infiniteInterval)
		recordResults(t, th, t0, 0, 1)
		require.InDelta(t, 0.5, th.RefusalRateAt(t0), 0, "one failure: 1/(1+1)")
		_, err := th.AllowAt(t0)
		require.Equal(t, refuses, err != nil, "%v", number)
	}
}

func TestAnOverloadIsAFailure(t *testing.T) {
	th := throttle.New("t", throttle.Config{})
	p, err := th.Allow()
	require.NoError(t, err)
	p.Record(window.Overloaded)
	require.EqualValues(t, 1, th.Totals().Failures)
}
