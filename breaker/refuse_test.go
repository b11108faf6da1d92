package breaker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat/view"
)

// refusingConfig is the config of a breaker that refuses all calls.
var refusingConfig = breaker.Config{Refuse: "maintenance until 18:00"}

func returnNil(context.Context) error { return nil }

func TestRefuseRefusesAllCallsForItsReason(t *testing.T) {
	b := breaker.New("pay", breaker.Config{})
	permit, err := b.Allow()
	require.NoError(t, err)
	require.NoError(t, b.Reconfigure(refusingConfig))
	err = b.Run(t.Context(), returnNil)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.EqualError(t, err, `breaker "pay" is forced open: maintenance until 18:00`)
	var open *breaker.OpenError
	require.ErrorAs(t, err, &open)
	require.Equal(t, refusingConfig.Refuse, open.Reason)
	require.Equal(t, refusingConfig.Refuse, b.Explain())
	require.Equal(t, breaker.ForcedOpen, b.State())
	permit.Record(breaker.Success) // a call in flight ends

	require.NoError(t, b.Reconfigure(breaker.Config{Refuse: "moved"}))
	require.EqualError(t, b.Run(t.Context(), returnNil), `breaker "pay" is forced open: moved`)
	require.NoError(t, b.Reconfigure(breaker.Config{}))
	require.NoError(t, b.Run(t.Context(), returnNil))
	require.Equal(t, breaker.Closed, b.State())
	require.EqualError(t, breaker.New("pay", refusingConfig).Run(t.Context(), returnNil),
		`breaker "pay" is forced open: maintenance until 18:00`)
}

// Force, Release, OpenFor and Reset take effect when Refuse ends.
func TestRefuseEndsInTheStateThatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Hour}
		nothing := func(*breaker.Breaker) {}
		force := func(s breaker.State) func(*breaker.Breaker) {
			return func(b *breaker.Breaker) { b.Force(s) }
		}
		fail := func(b *breaker.Breaker) {
			_ = b.Run(t.Context(), func(context.Context) error { return errors.New("down") })
		}
		for n, c := range []struct {
			before, during func(*breaker.Breaker)
			want           breaker.State
		}{
			{nothing, nothing, breaker.Closed},
			{nothing, fail, breaker.Closed},
			{fail, nothing, breaker.Open},
			{fail, (*breaker.Breaker).Reset, breaker.Closed},
			{nothing, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }, breaker.Open},
			{fail, func(*breaker.Breaker) { time.Sleep(2 * time.Hour) }, breaker.HalfOpen},
			{force(breaker.ForcedClosed), nothing, breaker.ForcedClosed},
			{force(breaker.Shadow), nothing, breaker.Shadow},
			{force(breaker.ForcedOpen), nothing, breaker.ForcedOpen},
			{force(breaker.ForcedOpen), (*breaker.Breaker).Release, breaker.Closed},
			{force(breaker.ForcedClosed), (*breaker.Breaker).Release, breaker.Closed},
			{nothing, force(breaker.ForcedOpen), breaker.ForcedOpen},
			{nothing, force(breaker.Disabled), breaker.Disabled},
			{force(breaker.Shadow), force(breaker.ForcedOpen), breaker.ForcedOpen},
			{nothing, (*breaker.Breaker).Release, breaker.Closed},
		} {
			b := breaker.New("b", config)
			c.before(b)
			refuses := config
			refuses.Refuse = refusingConfig.Refuse
			require.NoError(t, b.Reconfigure(refuses))
			c.during(b)
			refuses.Refuse += ", and later"
			require.NoError(t, b.Reconfigure(refuses))
			require.Equal(t, breaker.ForcedOpen, b.State(), "case %d", n)
			require.ErrorContains(t, b.Run(t.Context(), returnNil), refusingConfig.Refuse, "case %d", n)
			require.NoError(t, b.Reconfigure(config))
			require.Equal(t, c.want, b.State(), "case %d", n)
			if c.want == breaker.ForcedOpen {
				require.EqualError(t, b.Run(t.Context(), returnNil), `breaker "b" is forced open`, "case %d", n)
				require.Equal(t, "forced", b.Explain())
			}
			b.Release()
			require.NotEqual(t, breaker.ForcedOpen, b.State(), "case %d", n)
		}
	})
}

func TestABreakerThatBeginsToRefuseHasItsInitialStateAfterwards(t *testing.T) {
	for _, initial := range []breaker.State{breaker.Closed, breaker.Open, breaker.Shadow, breaker.ForcedOpen, breaker.ForcedClosed} {
		config := breaker.Config{Initial: initial, Refuse: "no", Cooldown: time.Hour}
		b := breaker.New("b", config)
		require.EqualError(t, b.Run(t.Context(), returnNil), `breaker "b" is forced open: no`)
		config.Refuse = ""
		require.NoError(t, b.Reconfigure(config))
		require.Equal(t, initial, b.State())
	}
}

func TestAGroupRefusesAlsoKeysWithoutRoom(t *testing.T) {
	for _, g := range []*breaker.Group[int]{
		breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 2, Breaker: refusingConfig}),
		breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 2}),
	} {
		require.NoError(t, g.Reconfigure(breaker.Config{}))
		for key := range 20 {
			require.NoError(t, g.Get(key).Run(t.Context(), returnNil))
			g.Get(key).Force(breaker.ForcedClosed)
		}
		kept := g.Get(7)
		require.NoError(t, g.Reconfigure(refusingConfig))
		require.LessOrEqual(t, g.Len(), 2)
		for key := range 40 {
			require.ErrorContains(t, g.Get(key).Run(t.Context(), returnNil), refusingConfig.Refuse, "key %d", key)
		}
		require.ErrorContains(t, kept.Run(t.Context(), returnNil), refusingConfig.Refuse)
		require.NoError(t, g.Reconfigure(breaker.Config{}))
		for key := range 60 {
			require.NoError(t, g.Get(key).Run(t.Context(), returnNil), "key %d", key)
		}
	}
}

// An operator may force all keys while the group refuses all calls by its config.
func TestAGroupIsForcedWhileItRefuses(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 4})
	own, other := g.Get(1), g.Get(2)
	own.Force(breaker.ForcedClosed)
	force := func(s string) {
		for v := range g.Views {
			_, err := v.(view.Tunable).Set("by hand", view.Setting{Name: "state", Value: s})
			require.NoError(t, err)
		}
	}
	require.NoError(t, g.Reconfigure(refusingConfig))
	force("forced_open")
	require.NoError(t, g.Reconfigure(breaker.Config{}))
	for key := range 10 {
		require.Regexp(t, `is forced open$`, g.Get(key).Run(t.Context(), returnNil).Error(), "key %d", key)
	}
	require.NoError(t, g.Reconfigure(refusingConfig))
	force("")
	require.Equal(t, breaker.ForcedOpen, other.State())
	require.NoError(t, g.Reconfigure(breaker.Config{}))
	require.Equal(t, breaker.ForcedClosed, own.State())
	require.Equal(t, breaker.Closed, other.State())
	for key := range 10 {
		require.NoError(t, g.Get(key).Run(t.Context(), returnNil))
	}
}

func TestAChangeToRefuseIsTold(t *testing.T) {
	var changes []string
	config := breaker.Config{OnChange: func(c breaker.Change) {
		changes = append(changes, string(c.From)+" "+string(c.To)+": "+c.Reason)
	}}
	b := breaker.New("b", config)
	for _, refuse := range []string{"one", "two", "", "three"} {
		config.Refuse = refuse
		require.NoError(t, b.Reconfigure(config))
	}
	require.Equal(t, []string{"closed forced_open: one", "forced_open closed: Refuse is empty", "closed forced_open: three"}, changes)
	require.EqualValues(t, 2, timesEntered(b, breaker.ForcedOpen))
}

// timesEntered returns how often the breaker has entered the state.
func timesEntered(b *breaker.Breaker, s breaker.State) (n float64) {
	for series, v := range b.Observe {
		if series.Instrument.Name == "weir.breaker.transitions" && series.Values[1] == string(s) {
			n = v
		}
	}
	return n
}

func TestARefuseThatIsTooLongIsInvalid(t *testing.T) {
	require.NoError(t, breaker.Config{Refuse: strings.Repeat("x", 1024)}.Validate())
	require.EqualError(t, breaker.Config{Refuse: strings.Repeat("x", 1025)}.Validate(), "breaker: Refuse has 1025 bytes, must have at most 1024")
}
