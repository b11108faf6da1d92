package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// Gates are package variables that are used with the real clock, then in two bubbles, each with a
// clock that begins in the year 2000, and then with the real clock again.
func TestAGateStartsAgainWithEachClock(t *testing.T) {
	config := weir.Config{Rate: limiter.PerMinute(1), Burst: 5, MaxConcurrent: 3, MaxWait: time.Second}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	for name, g := range map[string]*weir.Gate{"gate": weir.New("g", config), "key": group.Get("k")} {
		allowed := func() (n int) {
			for ; g.Run(bg(), succeed) == nil; n++ {
			}
			return n
		}
		inBubble := func(t *testing.T) {
			require.Equal(t, 5, allowed(), "%s: in a bubble", name)
			time.Sleep(time.Hour)
			require.Equal(t, 5, allowed(), "%s: after an hour in the bubble", name)
			g.Hold(time.Hour)
			require.Zero(t, allowed(), name)
			time.Sleep(24 * time.Hour)
			require.Equal(t, 5, allowed(), "%s: after a day in the bubble", name)
			g.Hold(time.Hour)
		}
		require.Equal(t, 5, allowed(), name)
		g.Hold(24 * time.Hour)
		require.Zero(t, allowed(), name)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		require.Equal(t, 5, allowed(), "%s: with the real clock", name)
	}
}
