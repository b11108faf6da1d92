package breaker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
)

// askedWaitError is the error of a service that asks its callers to wait.
type askedWaitError time.Duration

func (a askedWaitError) Error() string             { return "busy" }
func (a askedWaitError) RetryAfter() time.Duration { return time.Duration(a) }

// lastReason returns the reason of the last change.
func lastReason(t *testing.T, changes []breaker.Change, from, to breaker.State) string {
	t.Helper()
	require.NotEmpty(t, changes)
	c := changes[len(changes)-1]
	require.Equal(t, []breaker.State{from, to}, []breaker.State{c.From, c.To})
	return c.Reason
}

func TestATransitionByTheClockNamesTheTimeout(t *testing.T) {
	const opened = "failure rate 100% of 1 calls, limit 50%"
	for name, c := range map[string]struct {
		// opens the breaker, and waits until the cooldown or wait is over
		open func(t *testing.T, b *breaker.Breaker)
		want string
	}{
		"cooldown": {func(_ *testing.T, b *breaker.Breaker) {
			makeFailingCall(b)
			time.Sleep(5 * time.Second)
		}, "the cooldown of 5s is over"},
		"noticed late": {func(_ *testing.T, b *breaker.Breaker) {
			makeFailingCall(b)
			time.Sleep(time.Hour)
		}, "the cooldown of 5s is over"},
		"second round": {func(_ *testing.T, b *breaker.Breaker) {
			makeFailingCall(b)
			time.Sleep(5 * time.Second)
			makeFailingCall(b)
			time.Sleep(10 * time.Second)
		}, "the cooldown of 10s is over"},
		"an override in between": {func(_ *testing.T, b *breaker.Breaker) {
			makeFailingCall(b)
			time.Sleep(2 * time.Second)
			b.Force(breaker.ForcedClosed, "")
			time.Sleep(2 * time.Second)
			b.Release()
			time.Sleep(time.Second)
		}, "the cooldown of 5s is over"},
		"the service asked for more": {func(t *testing.T, b *breaker.Breaker) {
			_ = b.Run(t.Context(), func(context.Context) error { return askedWaitError(time.Minute) })
			time.Sleep(time.Minute)
		}, "the wait of 1m0s is over"},
		"by hand": {func(_ *testing.T, b *breaker.Breaker) {
			b.OpenFor(7 * time.Minute)
			time.Sleep(7 * time.Minute)
		}, "the wait of 7m0s is over"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes []breaker.Change
				config := quickToOpenConfig
				config.CooldownFactor, config.CooldownJitter, config.Probes = 2, breaker.Off, 2
				config.OnChange = func(c breaker.Change) { changes = append(changes, c) }
				b := breaker.New("bank", config)
				c.open(t, b)
				_ = b.Run(t.Context(), func(context.Context) error {
					require.Equal(t, c.want, lastReason(t, changes, breaker.Open, breaker.HalfOpen))
					if !strings.Contains(name, "hand") {
						require.Contains(t, b.Explain(), opened, "the reason of the opening is still told")
						require.Contains(t, reportOf(b).Reason, opened)
					}
					if !strings.Contains(name, "hand") && !strings.Contains(name, "override") {
						// Release begins an incident
						require.Equal(t, opened, reportOf(b).Cause)
					}
					return context.Canceled
				})
			})
		})
	}
}

func TestAHalfOpenTimeoutSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []breaker.Change
		config := quickToOpenConfig
		config.MinCalls, config.Probes, config.HalfOpenTimeout, config.ProbeTimeout = 2, 2, time.Minute, time.Hour
		config.OnChange = func(c breaker.Change) { changes = append(changes, c) }
		b := breaker.New("bank", config)
		makeFailingCall(b)
		makeFailingCall(b)
		time.Sleep(5 * time.Second)
		makeSuccessfulCall(b)
		time.Sleep(time.Minute)
		err := b.Run(t.Context(), func(context.Context) error { return nil })
		require.Equal(t, "too few probes ended within the HalfOpenTimeout of 1m0s", lastReason(t, changes, breaker.HalfOpen, breaker.Open))
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		require.Equal(t, "failure rate 100% of 2 calls, limit 50%", open.Reason)
		b.Force(breaker.ForcedClosed, "")
		time.Sleep(2 * time.Second)
		b.Release()
		time.Sleep(3 * time.Second)
		makeSuccessfulCall(b)
		require.Equal(t, "the cooldown of 5s is over", lastReason(t, changes, breaker.Open, breaker.HalfOpen))
	})
}

// If a breaker begins forced open, an incident begins when the breaker is made.
func TestAnIncidentOfABreakerThatBeginsForcedOpenKeepsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := quickToOpenConfig
		config.Force, config.ForceReason = breaker.ForcedOpen, "maintenance"
		b := breaker.New("bank", config)
		began := time.Now()
		time.Sleep(5 * time.Second)
		require.Equal(t, "maintenance", reportOf(b).Cause)
		require.NoError(t, b.Reconfigure(quickToOpenConfig))
		past := reportOf(b).Past
		require.Len(t, past, 1)
		require.Equal(t, began, past[0].Began)
		require.Equal(t, "maintenance", past[0].Cause)
	})
}

func TestAnIncidentOfABreakerThatIsOpenedKeepsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", quickToOpenConfig)
		b.OpenFor(5 * time.Second)
		began := time.Now()
		time.Sleep(5 * time.Second)
		for range 2 {
			// half-open
			_ = b.Run(t.Context(), func(context.Context) error { return context.Canceled })
			r := reportOf(b)
			require.Equal(t, began, r.Began)
			require.Equal(t, "opened by OpenFor for 5s", r.Cause)
			makeFailingCall(b)
			time.Sleep(5 * time.Second)
		}
		require.Equal(t, 3, reportOf(b).Openings)
	})
}

func TestAllRecordsOfABreakerHaveNameAndKeyInOneNamespace(t *testing.T) {
	var text bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&text, nil))
	g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{ConsecutiveFailures: 1, OnChange: breakerlog.Changes(logger)}})
	b := g.Get("a.example")
	_ = b.Run(t.Context(), func(context.Context) error { return errors.New("no route to host") })
	b.Force(breaker.ForcedOpen, "")
	b.Reset()
	b.Release()
	list := decodeLog(t, &text)
	require.Len(t, list, 3)
	for _, r := range list {
		require.Equal(t, "hosts", r["weir.breaker.name"])
		require.Equal(t, "a.example", r["weir.group.key"])
		for key := range r {
			if key != slog.TimeKey && key != slog.LevelKey && key != slog.MessageKey && key != "event.name" {
				require.True(t, strings.HasPrefix(key, "weir."), key)
			}
		}
	}
}
