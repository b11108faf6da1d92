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

// forcedConfig is the config of a breaker that refuses all calls.
var forcedConfig = breaker.Config{Force: breaker.ForcedOpen, ForceReason: "maintenance until 18:00"}

func returnNil(context.Context) error { return nil }

func TestForcedOpenRefusesAllCallsForItsReason(t *testing.T) {
	b := breaker.New("pay", breaker.Config{})
	permit, err := b.Allow()
	require.NoError(t, err)
	require.NoError(t, b.Reconfigure(forcedConfig))
	requireForcedOpen(t, b, "maintenance until 18:00")
	permit.Record(bg(), nil, breaker.Success) // a call in flight ends

	require.NoError(t, b.Reconfigure(breaker.Config{Force: breaker.ForcedOpen, ForceReason: "moved"}))
	requireForcedOpen(t, b, "moved")
	require.NoError(t, b.Reconfigure(breaker.Config{}))
	require.NoError(t, b.Run(t.Context(), returnNil))
	require.Equal(t, breaker.Closed, b.State())
	requireForcedOpen(t, breaker.New("pay", forcedConfig), "maintenance until 18:00")

	b.Force(breaker.ForcedOpen, "a test")
	requireForcedOpen(t, b, "a test")
	b.Force(breaker.ForcedOpen, "another test")
	requireForcedOpen(t, b, "another test")
	require.NoError(t, b.Reconfigure(forcedConfig))
	requireForcedOpen(t, b, "another test")
	b.Release()
	requireForcedOpen(t, b, "maintenance until 18:00")
}

// requireForcedOpen requires that a breaker with the name pay refuses all calls for a reason.
func requireForcedOpen(t *testing.T, b *breaker.Breaker, reason string) {
	t.Helper()
	err := b.Run(t.Context(), returnNil)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.EqualError(t, err, `breaker "pay" is forced open: `+reason)
	var open *breaker.OpenError
	require.ErrorAs(t, err, &open)
	require.Equal(t, reason, open.Reason)
	require.Equal(t, reason, b.Explain())
	require.Equal(t, breaker.ForcedOpen, b.State())
}

// An override by hand lies over that of the Config, and both lie over the automatic state.
func TestTheOverrideByHandLiesOverThatOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Hour}
		nothing := func(*breaker.Breaker) {}
		force := func(s breaker.State) func(*breaker.Breaker) {
			return func(b *breaker.Breaker) { b.Force(s, "by hand") }
		}
		fail := func(b *breaker.Breaker) {
			_ = b.Run(t.Context(), func(context.Context) error { return errors.New("down") })
		}
		for n, c := range []struct {
			before, during func(*breaker.Breaker) // Reconfigure sets the override of the Config
			forced, after  breaker.State          // and lifts it
		}{
			{nothing, nothing, breaker.ForcedOpen, breaker.Closed},
			{nothing, fail, breaker.ForcedOpen, breaker.Closed},
			{fail, nothing, breaker.ForcedOpen, breaker.Open},
			{fail, (*breaker.Breaker).Reset, breaker.ForcedOpen, breaker.Closed},
			{nothing, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }, breaker.ForcedOpen, breaker.Open},
			{fail, func(*breaker.Breaker) { time.Sleep(2 * time.Hour) }, breaker.ForcedOpen, breaker.HalfOpen},
			{force(breaker.ForcedClosed), nothing, breaker.ForcedClosed, breaker.ForcedClosed},
			{force(breaker.Shadow), nothing, breaker.Shadow, breaker.Shadow},
			{force(breaker.ForcedOpen), nothing, breaker.ForcedOpen, breaker.ForcedOpen},
			{force(breaker.ForcedOpen), (*breaker.Breaker).Release, breaker.ForcedOpen, breaker.Closed},
			{force(breaker.ForcedClosed), (*breaker.Breaker).Release, breaker.ForcedOpen, breaker.Closed},
			{nothing, force(breaker.ForcedOpen), breaker.ForcedOpen, breaker.ForcedOpen},
			{nothing, force(breaker.Disabled), breaker.Disabled, breaker.Disabled},
			{force(breaker.Shadow), force(breaker.ForcedOpen), breaker.ForcedOpen, breaker.ForcedOpen},
			{nothing, (*breaker.Breaker).Release, breaker.ForcedOpen, breaker.Closed},
		} {
			b := breaker.New("b", config)
			c.before(b)
			forced := config
			forced.Force, forced.ForceReason = breaker.ForcedOpen, "by config"
			require.NoError(t, b.Reconfigure(forced))
			c.during(b)
			require.Equal(t, c.forced, b.State(), "case %d", n)
			forced.ForceReason += ", and later"
			require.NoError(t, b.Reconfigure(forced))
			require.Equal(t, c.forced, b.State(), "case %d", n)
			if c.forced == breaker.ForcedOpen && c.after != breaker.ForcedOpen {
				require.EqualError(t, b.Run(t.Context(), returnNil), `breaker "b" is forced open: by config, and later`, "case %d", n)
			}
			require.NoError(t, b.Reconfigure(config))
			require.Equal(t, c.after, b.State(), "case %d", n)
			if c.after == breaker.ForcedOpen {
				require.EqualError(t, b.Run(t.Context(), returnNil), `breaker "b" is forced open: by hand`, "case %d", n)
			}
			b.Release()
			require.NotContains(t, overrides, b.State(), "case %d", n)
		}
	})
}

// The override of a Config holds from the beginning, also where one by hand comes first.
func TestReleaseShowsTheOverrideOfTheConfig(t *testing.T) {
	for _, state := range overrides {
		b := breaker.New("b", breaker.Config{Force: state})
		require.Equal(t, state, b.State())
		b.Release()
		require.Equal(t, state, b.State(), "Release lifts only an override by hand")
		b.Force(breaker.ForcedClosed, "")
		require.Equal(t, breaker.ForcedClosed, b.State())
		b.Release()
		require.Equal(t, state, b.State())
		require.NoError(t, b.Reconfigure(breaker.Config{}))
		require.Equal(t, breaker.Closed, b.State())
	}
}

func TestAGroupForcesAlsoKeysWithoutRoom(t *testing.T) {
	for _, g := range []*breaker.Group[int]{
		breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 2, Breaker: forcedConfig}),
		breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 2}),
	} {
		require.NoError(t, g.ReconfigureAt(time.Now(), breaker.Config{}))
		for key := range 20 {
			require.NoError(t, g.Get(key).Run(t.Context(), returnNil))
		}
		kept := g.Get(7)
		require.NoError(t, g.ReconfigureAt(time.Now(), forcedConfig))
		require.LessOrEqual(t, g.Len(), 2)
		for key := range 40 {
			require.ErrorContains(t, g.Get(key).Run(t.Context(), returnNil), forcedConfig.ForceReason, "key %d", key)
		}
		require.ErrorContains(t, kept.Run(t.Context(), returnNil), forcedConfig.ForceReason)
		require.NoError(t, g.ReconfigureAt(time.Now(), breaker.Config{}))
		for key := range 60 {
			require.NoError(t, g.Get(key).Run(t.Context(), returnNil), "key %d", key)
		}
	}
}

// An operator may force all keys while the Config of the group forces them too.
func TestAGroupIsForcedByHandOverItsConfig(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{MaxKeys: 4})
	own := g.Get(1)
	own.Force(breaker.ForcedClosed, "")
	force := func(s breaker.State) {
		for v := range g.Views {
			_, err := v.(view.Tunable).Set("by hand", view.Setting{Name: "state", Value: string(s)})
			require.NoError(t, err)
		}
	}
	require.NoError(t, g.ReconfigureAt(time.Now(), forcedConfig))
	force(breaker.ForcedOpen)
	requireAll := func(want string) {
		t.Helper()
		for key := range 10 {
			require.Regexp(t, want, g.Get(key).Run(t.Context(), returnNil).Error(), "key %d", key)
		}
	}
	requireAll(`is forced open$`)
	force(breaker.Shadow)
	for key := range 10 {
		require.NoError(t, g.Get(key).Run(t.Context(), returnNil))
	}
	require.Equal(t, breaker.Shadow, g.Get(2).State())
	force(breaker.ForcedOpen)
	require.NoError(t, g.ReconfigureAt(time.Now(), breaker.Config{}))
	requireAll(`is forced open$`)
	require.NoError(t, g.ReconfigureAt(time.Now(), forcedConfig))
	force("")
	require.ErrorContains(t, g.Get(2).Run(t.Context(), returnNil), forcedConfig.ForceReason)
	require.Equal(t, breaker.ForcedClosed, own.State(), "it is forced by hand")
	require.NoError(t, g.ReconfigureAt(time.Now(), breaker.Config{}))
	require.Equal(t, breaker.ForcedClosed, own.State())
	require.Equal(t, breaker.Closed, g.Get(2).State())
	for key := range 10 {
		require.NoError(t, g.Get(key).Run(t.Context(), returnNil))
	}
}

// The group neither overrides a breaker that has left it, nor lifts its override.
func TestABreakerThatHasLeftIsNotUnderTheOverrideOfItsGroup(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
	old := g.Get("a")
	require.True(t, g.Forget("a"))
	g.ForceAll(breaker.Disabled)
	require.Equal(t, breaker.Disabled, g.Get("a").State())
	require.NoError(t, old.Reconfigure(breaker.Config{MinCalls: 7}))
	require.Equal(t, breaker.Closed, old.State())
	old.Force(breaker.Shadow, "")
	require.Equal(t, breaker.Shadow, old.State())
	old.Release()
	require.Equal(t, breaker.Closed, old.State())
}

// Of the overrides of a key and of its group, the later one is in effect. The earlier one of the
// key is in effect again when that of the group is lifted.
func TestTheLaterOfTwoOverridesByHandIsInEffect(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
	b := g.Get("a")
	requireState := func(want breaker.State) {
		t.Helper()
		require.Equal(t, want, b.State())
	}
	b.Force(breaker.Shadow, "")
	g.ForceAll(breaker.Disabled)
	requireState(breaker.Disabled)
	b.Force(breaker.ForcedClosed, "")
	requireState(breaker.ForcedClosed)
	b.Release()
	requireState(breaker.Closed)
	b.Force(breaker.Shadow, "")
	g.ForceAll(breaker.ForcedOpen)
	g.ReleaseAll()
	requireState(breaker.Shadow)
}

func TestAChangeToForceIsTold(t *testing.T) {
	var changes []string
	config := breaker.Config{OnChange: func(c breaker.Change) {
		changes = append(changes, string(c.From)+" "+string(c.To)+": "+c.Reason)
	}}
	b := breaker.New("b", config)
	for _, reason := range []string{"one", "two", "", "three"} {
		config.Force, config.ForceReason = breaker.ForcedOpen, reason
		if reason == "" {
			config.Force = ""
		}
		require.NoError(t, b.Reconfigure(config))
	}
	b.Force(breaker.Shadow, "a try")
	b.Release()
	require.Equal(t, []string{
		"closed forced_open: one", "forced_open closed: Force is empty", "closed forced_open: three",
		"forced_open shadow: a try", "shadow forced_open: released",
	}, changes)
	require.EqualValues(t, 3, timesEntered(b, breaker.ForcedOpen))
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

func TestAReasonThatIsTooLongIsInvalid(t *testing.T) {
	long := strings.Repeat("x", 1025)
	require.NoError(t, breaker.Config{Force: breaker.Shadow, ForceReason: long[1:]}.Validate())
	require.EqualError(t, breaker.Config{Force: breaker.Shadow, ForceReason: long}.Validate(),
		"breaker: ForceReason has 1025 bytes, must have at most 1024")
	require.EqualError(t, breaker.Config{ForceReason: "maintenance"}.Validate(),
		`breaker: ForceReason is "maintenance", must be empty if Force is`)
	b := breaker.New("b", breaker.Config{})
	b.Force(breaker.ForcedOpen, long[1:])
	require.PanicsWithValue(t, "breaker: the reason has 1025 bytes, must have at most 1024", func() { b.Force(breaker.ForcedOpen, long) })
}
