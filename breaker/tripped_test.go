package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestTrippedHoldsFromTheOpeningUntilTheBreakerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Probes: 1, Cooldown: time.Second})
		require.False(t, b.Tripped(), "new")
		run(t, b, 1, fail)
		require.True(t, b.Tripped(), "open")
		for range 3 { // the service stays down
			time.Sleep(time.Second)
			require.Equal(t, breaker.HalfOpen, b.State())
			require.True(t, b.Tripped(), "half-open, without a call")
			run(t, b, 1, fail)
			require.True(t, b.Tripped(), "open again")
		}
		time.Sleep(time.Second)
		p, err := b.Allow()
		require.NoError(t, err)
		require.True(t, b.Tripped(), "half-open, and a probe is out")
		p.Record(bg(), nil, breaker.Success)
		require.False(t, b.Tripped(), "closed")
	})
}

func TestTrippedUnderEachOverride(t *testing.T) {
	for _, c := range []struct {
		state         breaker.State
		over, release bool // whether it is tripped under the override and after its release
		begin         func(*breaker.Breaker)
	}{
		{breaker.ForcedOpen, true, false, func(*breaker.Breaker) {}},
		{breaker.ForcedOpen, true, true, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		{breaker.ForcedClosed, false, true, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		{breaker.Disabled, false, true, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		{breaker.Shadow, false, true, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
	} {
		b := breaker.New("b", breaker.Config{})
		c.begin(b)
		b.Force(c.state, "")
		require.Equal(t, c.over, b.Tripped(), "%v", c.state)
		b.Release()
		require.Equal(t, c.release, b.Tripped(), "%v, released", c.state)
	}
}
