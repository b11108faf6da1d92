package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

type callKey struct{}

// namedCallContext returns a context that carries the name of a call.
func namedCallContext(name string) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithValue(context.Background(), callKey{}, name))
}

// callNameOf returns the name of the call in the context of a change, or "".
func callNameOf(c breaker.Change) string {
	name, _ := c.Context().Value(callKey{}).(string)
	return name
}

// transitionCauses runs calls by their names and returns the state that each change entered, with
// its cause.
func transitionCauses(t *testing.T, c breaker.Config, step time.Duration, calls ...string) (list []string) {
	var told recorder
	b := breaker.New("b", told.attachTo(c))
	for _, name := range calls {
		ctx, cancel := namedCallContext(name)
		_ = b.Run(ctx, func(context.Context) error {
			if name[0] == '-' {
				return errors.New("down")
			}
			return nil
		})
		cancel()
		time.Sleep(step)
	}
	for _, change := range told.changes() {
		require.NoError(t, change.Context().Err(), "it is never cancelled")
		list = append(list, string(change.To)+" "+callNameOf(change))
	}
	return list
}

func TestAChangeHasTheContextOfTheCallThatCausedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.Config{MinCalls: 3, Probes: 2, Recovery: breaker.Off, FailureRun: breaker.Off, Cooldown: time.Second, CooldownJitter: breaker.Off}
		require.Equal(t, []string{"open -3", "half_open "}, transitionCauses(t, c, time.Second, "-1", "-2", "-3", "4"))
		require.Equal(t, []string{"open 3"}, transitionCauses(t, c, 0, "-1", "-2", "3"), "the success that reaches MinCalls")
		require.Equal(t, []string{"open -3", "half_open ", "closed 5"}, transitionCauses(t, c, time.Second, "-1", "-2", "-3", "4", "5"))
		require.Equal(t, []string{"open -3", "half_open ", "open -5"}, transitionCauses(t, c, time.Second, "-1", "-2", "-3", "-4", "-5"))
		c.Recovery = 2 * time.Second
		list := transitionCauses(t, c, 500*time.Millisecond, "-1", "-2", "-3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n")
		require.Equal(t, "open -3", list[0])
		require.Regexp(t, `^recovering \w$`, list[2])
		require.Equal(t, "closed ", list[3], "no result, but time")
		c.Force = breaker.Shadow
		require.Equal(t, "shadow -3", transitionCauses(t, c, time.Second, "-1", "-2", "-3")[0])
	})
}

func TestAChangeThatNoCallCausedHasTheBackgroundContext(t *testing.T) {
	var told recorder
	b := breaker.New("b", told.attachTo(breaker.Config{ConsecutiveFailures: 1, Probes: 1}))
	ctx, cancel := namedCallContext("x")
	defer cancel()
	_ = b.Run(ctx, func(context.Context) error { b.OpenFor(time.Minute); return nil })
	require.Equal(t, breaker.Open, told.changes()[0].To)
	require.Empty(t, callNameOf(told.changes()[0]), "by hand, while a call runs")
	require.Equal(t, bg(), breaker.Change{}.Context())
}

func TestAPermitPassesItsContextOn(t *testing.T) {
	for name, done := range map[string]func(*breaker.Permit, context.Context){
		"Done":   func(p *breaker.Permit, ctx context.Context) { p.Done(ctx, errors.New("down")) },
		"Record": func(p *breaker.Permit, ctx context.Context) { p.Record(ctx, nil, breaker.Failure) },
	} {
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{ConsecutiveFailures: 1}))
		p, err := b.Allow()
		require.NoError(t, err)
		ctx, cancel := namedCallContext(name)
		done(&p, ctx)
		cancel()
		require.Equal(t, name, callNameOf(told.changes()[0]))
	}
}
