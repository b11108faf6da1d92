package fleet_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

// A slot has moved to a server that hangs. That server has failed, not the one that redirected to
// it.
func TestAFailureAfterARedirectIsCountedForTheLastServer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	l := connectTo(t, dialCluster(t, c.Addrs()...), fleet.LinkConfig{Timeout: 2 * time.Second, Prefix: keyPrefix(t)})
	b := newLimiter(l, "redirect", fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour}, errorOnOutage)
	_, err := b.Take(t.Context(), "user", 1) // the client knows the slots from now on
	require.NoError(t, err)
	slot := c.Slot(b.StateKeys("user")[0])
	from, to := c.Nodes[c.Home(slot)], c.Nodes[(c.Home(slot)+1)%3]
	from.Do("DEL", b.StateKeys("user")[0])
	c.Settle(slot, to)
	to.Pause()
	defer to.Continue()
	_, err = b.Take(t.Context(), "user", 1)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	breakers := maps.Collect(l.Breakers())
	failures := func(addr string) int64 {
		if breakers[addr] == nil {
			return 0
		}
		return breakers[addr].Counts().Failures
	}
	require.Equal(t, [2]int64{0, 1}, [2]int64{failures(from.Addr()), failures(to.Addr())})
	require.Equal(t, breaker.Closed, breakers[from.Addr()].State())
}
