package alert_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// outage is a service that is down, and its client, which makes ten calls per second.
type outage struct {
	config breaker.Config
	call   func(ctx context.Context) error
	every  time.Duration // between two calls; default 100 ms
}

// callThatHangs makes a call that gets no answer in time.
func callThatHangs(timeout time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	}
}

func outages() map[string]outage {
	refused := func(context.Context) error { return errDown }
	slow := func(context.Context) error { time.Sleep(2 * time.Second); return nil }
	probing := breaker.Config{Cooldown: 30 * time.Second, CooldownFactor: 2, MaxCooldown: 5 * time.Minute, Probes: 10}
	return map[string]outage{
		"refuses":                  {call: refused},
		"refuses, long cooldowns":  {call: refused, config: probing},
		"refuses a quiet client":   {call: refused, config: breaker.Config{ConsecutiveFailures: 3}, every: 20 * time.Second},
		"hangs for 200 ms":         {call: callThatHangs(200 * time.Millisecond)},
		"hangs for 1 s":            {call: callThatHangs(time.Second)},
		"hangs for 3 s":            {call: callThatHangs(3 * time.Second)},
		"hangs, long cooldowns":    {call: callThatHangs(3 * time.Second), config: probing},
		"hangs for a minute":       {call: callThatHangs(time.Minute)},
		"answers, but after 2 s":   {call: slow, config: breaker.Config{SlowCall: time.Second}},
		"answers after 2 s, probe": {call: slow, config: breaker.Config{SlowCall: time.Second, Probes: 1}},
	}
}

// run makes calls through the breaker for the given duration, without waiting for earlier calls.
func (o outage) run(ctx context.Context, b *breaker.Breaker, d time.Duration, call func(context.Context) error) {
	every := o.every
	if every == 0 {
		every = 100 * time.Millisecond
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(every) {
		go func() { _ = b.Run(ctx, call) }()
	}
}

func TestTrippedFiresAndResolvesOncePerOutage(t *testing.T) {
	for name, down := range outages() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := breaker.New("service", down.config)
				var told alertRecorder
				m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("pager")}, Logger: discardLogger()},
					alert.Rule{Name: "down", Value: alert.Bool(service.Tripped), When: alert.Above(0), For: time.Minute})
				ctx, cancel := context.WithCancel(t.Context())
				go m.Run(ctx)
				well := func(context.Context) error { return nil }

				down.run(ctx, service, 10*time.Minute, well)
				require.Empty(t, told.lines(), "all is well")
				began := time.Now()
				down.run(ctx, service, 30*time.Minute, down.call)
				require.Equal(t, []string{"down firing"}, told.lines(), "during an outage of 30 minutes")
				require.Less(t, told.alerts()[0].StartsAt.Sub(began), 5*time.Minute)
				down.run(ctx, service, 20*time.Minute, well)
				require.Equal(t, []string{"down firing", "down resolved"}, told.lines(), "after the outage")
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestTrippedForABreakerForcedOpen(t *testing.T) {
	b := breaker.New("x", breaker.Config{})
	v := newValueReader(alert.Bool(b.Tripped))
	v.require(t, 0, 0)
	for i, state := range []breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow} {
		b.Force(state, "")
		want := 0.0
		if state == breaker.ForcedOpen {
			want = 1
		}
		v.require(t, time.Duration(i+1)*s, want)
	}
	b.Release()
	v.require(t, 5*s, 0)
}
