package alert_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// flappingConfig is the config of a gate that opens at the second failure, and closes after one
// successful probe.
var flappingConfig = weir.Config{Breaker: breaker.Config{
	ConsecutiveFailures: 2, Cooldown: 10 * time.Second, MaxCooldown: 10 * time.Second, Probes: 1, Recovery: breaker.Off, CooldownJitter: breaker.Off,
}}

// callEachSecond calls the gate once per second.
func callEachSecond(t *testing.T, gate *weir.Gate, d time.Duration, service func(context.Context) error) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		_ = gate.Run(t.Context(), service)
	}
}

func TestTransitionsDistinguishFlappingFromAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: flappingConfig})
		gate, other := gates.Get("a"), gates.Get("b")
		closed := newValueReader(alert.Transitions(gate, "closed", 15*time.Minute))
		opened := newValueReader(alert.Transitions(gate.Breaker(), "open", 15*time.Minute))
		ofGroup := newValueReader(alert.Transitions(gates, "closed", 15*time.Minute))
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
			Name: "flaps", When: alert.Above(2),
			Value: alert.Each(gates.All(), func(g *weir.Gate) alert.Value { return alert.Transitions(g, "closed", 15*time.Minute) }),
		})
		for _, v := range []*valueReader{closed, opened, ofGroup} {
			v.require(t, 0, 0)
		}
		m.Evaluate(time.Now())
		began := time.Now()
		callEachSecond(t, gate, 5*time.Minute, failCall)
		closed.require(t, time.Since(began), 0)
		after, ok := opened.at(time.Since(began))
		require.True(t, ok)
		require.Greater(t, after, 20.0, "it probes and opens again")
		callEachSecond(t, gate, time.Minute, succeed)
		closed.require(t, time.Since(began), 1)
		for range 3 {
			callEachSecond(t, gate, 5*time.Second, failCall)
			callEachSecond(t, gate, 15*time.Second, succeed)
		}
		callEachSecond(t, other, 5*time.Second, failCall)
		callEachSecond(t, other, 15*time.Second, succeed)
		closed.require(t, time.Since(began), 4)
		ofGroup.require(t, time.Since(began), 5)
		m.Evaluate(time.Now())
		require.Len(t, m.Alerts(), 1)
		require.Equal(t, "a", m.Alerts()[0].Key)
		require.Equal(t, "number of transitions to closed over 15m is 4, alerts above 2", m.Alerts()[0].Summary)
		time.Sleep(20 * time.Minute)
		closed.require(t, time.Since(began), 0)
	})
}

// An alert about a rule that fires and resolves again and again.
func TestTransitionsOfAMonitor(t *testing.T) {
	bad := false
	watched := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{Name: "x", Value: alert.Bool(func() bool { return bad }), When: alert.Above(0)})
	v := newValueReader(alert.Transitions(watched, "firing", time.Minute))
	v.require(t, 0, 0)
	for i := range 6 {
		bad = !bad
		watched.Evaluate(v.start.Add(time.Duration(i) * s))
	}
	v.require(t, 6*s, 3)
}

func TestInvalidTransitions(t *testing.T) {
	gate := weir.New("x", weir.Config{})
	for want, v := range map[string]alert.Value{
		`the state is "Closed", must be one of ["closed" "open"`: alert.Transitions(gate, "Closed", time.Minute),
		`the source is nil`:                alert.Transitions(nil, "closed", time.Minute),
		`the span is 0s, must be positive`: alert.Transitions(gate, "closed", 0),
	} {
		err := alert.Config{}.Validate(alert.Rule{Name: "x", Value: v, When: alert.Above(0)})
		require.ErrorContains(t, err, want)
	}
	for _, state := range []breaker.State{
		breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow,
	} {
		v := alert.Transitions(gate, string(state), time.Minute)
		require.NoError(t, alert.Config{}.Validate(alert.Rule{Name: "x", Value: v, When: alert.Above(0)}))
	}
}
