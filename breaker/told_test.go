package breaker_test

import (
	"bytes"
	"log"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
	"github.com/weir-go/weir/window"
)

// Every method that finds a transition due delivers the change, and does not leave that to the next
// call.
func TestEveryCallAfterACooldownDeliversTheChange(t *testing.T) {
	var told []breaker.State
	c := breaker.Config{MinCalls: 1, Cooldown: 5 * time.Second, HalfOpenTimeout: 2 * time.Second, OnChange: func(c breaker.Change) { told = append(told, c.To) }}
	probing := func() (*breaker.Breaker, *breaker.Permit) {
		told = nil
		b := breaker.NewAt("b", c, t0)
		p, err := b.AllowAt(t0)
		require.NoError(t, err)
		p.RecordAt(t0, breaker.Failure)
		p, err = b.AllowAt(after(5 * time.Second))
		require.NoError(t, err)
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen}, told, "the probe asks")
		return b, &p
	}
	gaveUp := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open}

	b, _ := probing()
	require.ErrorIs(t, b.CheckAt(after(8*time.Second)), breaker.ErrOpen)
	require.Equal(t, gaveUp, told, "somebody checks")

	_, p := probing()
	require.False(t, p.RecordAt(after(8*time.Second), breaker.Success))
	require.Equal(t, gaveUp, told, "a late result comes")
}

func TestACallbackThatWasTakenAwayIsNotCalled(t *testing.T) {
	var b *breaker.Breaker
	var told []breaker.State
	b = breaker.New("b", breaker.Config{OnChange: func(c breaker.Change) {
		told = append(told, c.To)
		b.Force(breaker.Shadow, "") // this change waits until the callback has returned
		require.NoError(t, b.Reconfigure(breaker.Config{}))
	}})
	b.Force(breaker.ForcedOpen, "")
	require.Equal(t, []breaker.State{breaker.ForcedOpen}, told)
	require.Zero(t, b.StatsNow().Dropped, "there is no callback that missed it")
}

func TestACallbackThatPanicsIsLogged(t *testing.T) {
	var text bytes.Buffer
	writer, flags := log.Writer(), log.Flags()
	log.SetOutput(&text)
	log.SetFlags(0)
	t.Cleanup(func() {
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{OnChange: func(breaker.Change) { panic("boom") }}})
	g.Get("a").Force(breaker.ForcedOpen, "")
	require.Equal(t, `breaker: OnChange of "hosts" for "a" panicked at the change from closed to forced_open: boom`+"\n", text.String())
}

func TestAfterOpenIsCalledOnlyForAnOpening(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	b.Force(breaker.ForcedOpen, "") // before AfterOpen is called
	b.Release()
	calls := 0
	b.AfterOpen(func() { calls++ })
	for _, s := range []breaker.State{breaker.Shadow, breaker.ForcedClosed, breaker.Disabled} {
		b.Force(s, "")
		require.Zero(t, calls, s)
	}
	b.Release()
	b.Reset()
	require.Zero(t, calls)
	b.Force(breaker.ForcedOpen, "")
	require.Equal(t, 1, calls)
}

// A change has the counts that Trip was called with, whatever was counted while Trip ran.
func TestAChangeHasTheCountsThatTripSaw(t *testing.T) {
	var other breaker.Permit
	asked := 0
	var told recorder
	b := breaker.NewAt("b", told.attachTo(breaker.Config{Trip: func(c window.Counts) (string, bool) {
		asked++
		if asked > 1 {
			require.Equal(t, window.Counts{Successes: 1, Failures: 1}, c)
			return "", false
		}
		require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, c)
		require.True(t, other.RecordAt(t0, breaker.Success))
		return "enough", true
	}}), t0)
	require.NoError(t, b.AdmitAt(t0, &other))
	p, err := b.AllowAt(t0)
	require.NoError(t, err)
	require.True(t, p.RecordAt(t0, breaker.Failure))
	require.Equal(t, 2, asked)
	changes := told.changes()
	require.Len(t, changes, 1)
	require.Equal(t, window.Counts{Failures: 1}, withoutStreak(changes[0].Counts))
}

// A stale time moves no deadline, not even the deadline of a shadow.
func TestAShadowOpeningAtAStaleTimeIsDatedNow(t *testing.T) {
	var told recorder
	b := breaker.NewAt("b", told.attachTo(breaker.Config{Cooldown: 5 * time.Second, MinCalls: 2, Force: breaker.Shadow}), t0)
	for _, c := range []struct {
		at time.Duration
		o  breaker.Outcome
	}{{10 * time.Second, breaker.Success}, {3 * time.Second, breaker.Failure}} {
		p, err := b.AllowAt(after(c.at))
		require.NoError(t, err)
		p.RecordAt(after(c.at), c.o)
	}
	changes := told.changes()
	require.Len(t, changes, 1)
	require.True(t, changes[0].At.Equal(after(10*time.Second)), "at %v", changes[0].At.Sub(t0))
	_, err := b.AllowAt(after(15*time.Second - 1))
	require.NoError(t, err)
	_, err = b.AllowAt(after(15 * time.Second))
	require.NoError(t, err)
	require.EqualValues(t, 1, b.StatsAt(after(15*time.Second)).ShadowRefused, "for the cooldown of five seconds")
}

func TestKeyIsInTheErrorsAndTheLogOfItsBreaker(t *testing.T) {
	var text bytes.Buffer
	c := breaker.Config{OnChange: breakerlog.Changes(slog.New(slog.NewJSONHandler(&text, nil)))}
	g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: c})
	g.Get("a.example").Force(breaker.ForcedOpen, "")
	require.EqualError(t, g.Get("a.example").Check(), `breaker "hosts" for "a.example" is forced open`)
	lone := breaker.New("lone", c)
	lone.Force(breaker.ForcedOpen, "")
	require.EqualError(t, lone.Check(), `breaker "lone" is forced open`)

	lines := decodeLog(t, &text)
	require.Len(t, lines, 2)
	require.Equal(t, "a.example", lines[0]["weir.group.key"])
	require.NotContains(t, lines[1], "weir.group.key")
}
