package admin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// A handler and a gate are package variables that are used with the real clock, then in two
// bubbles, and then with the real clock again. In each clock timed actions end in time, although an
// action of the clock before has not ended. The last one would end the program if the timer of a
// bubble were stopped.
func TestAHandlerStartsAgainWithEachClock(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(100)})
	k := newHandlerTest(t, g)
	act := func(t *testing.T) {
		k.sendAction("force", "name=g", `{"state":"open","for":"10m"}`)
		require.Equal(t, breaker.ForcedOpen, g.Breaker().State())
		a := k.sendAction("limits", "name=g", `{"rate":"5/s","for":"10m"}`)
		require.Equal(t, "5/s", a.Rate)
		a = k.sendAction("hold", "name=g", `{"for":"5m"}`)
		require.Len(t, a.Timed, 3)
		for _, timed := range a.Timed {
			until, err := time.Parse(time.RFC3339Nano, timed.Until)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Until(until), 10*time.Minute)
		}
	}
	inBubble := func(t *testing.T) {
		act(t)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		a := k.send("GET", "/object?name=g", "")
		require.Empty(t, a.Timed)
		require.Equal(t, "100/s", a.Rate)
		require.Equal(t, breaker.Closed, g.Breaker().State())
		act(t)
	}
	act(t)
	synctest.Test(t, inBubble)
	synctest.Test(t, inBubble)
	act(t)
}
