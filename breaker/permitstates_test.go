package breaker_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// callEndings lists every way to make and end a call. Each calls during while the call is in
// flight.
var callEndings = map[string]func(b *breaker.Breaker, during func()){
	"Run": func(b *breaker.Breaker, during func()) {
		_ = b.Run(bg(), func(context.Context) error { during(); return errDown })
	},
	"Do": func(b *breaker.Breaker, during func()) {
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { during(); return 0, errDown })
	},
	"DoResult": func(b *breaker.Breaker, during func()) {
		_, _ = breaker.DoResult(bg(), b, func(context.Context) (int, error) { during(); return 0, nil },
			func(int, error) breaker.Outcome { return breaker.Failure })
	},
	"a panic": func(b *breaker.Breaker, during func()) {
		defer func() { _ = recover() }()
		_ = b.Run(bg(), func(context.Context) error { during(); panic("boom") })
	},
	"Permit.Run": func(b *breaker.Breaker, during func()) {
		if p, err := b.Allow(); err == nil {
			_ = p.Run(bg(), func(context.Context) error { during(); return errDown })
		}
	},
	"Record": func(b *breaker.Breaker, during func()) {
		if p, err := b.Allow(); err == nil {
			during()
			p.Record(bg(), nil, breaker.Failure)
			p.Record(bg(), nil, breaker.Failure) // does not count again
		}
	},
	"Done": func(b *breaker.Breaker, during func()) {
		if p, err := b.Allow(); err == nil {
			during()
			p.Done(bg(), errDown)
		}
	},
	"Admit": func(b *breaker.Breaker, during func()) {
		var p breaker.Permit
		if b.Admit(&p) == nil {
			during()
			p.Record(bg(), nil, breaker.Failure)
		}
	},
}

// However a call is made, its result counts once if the state of the call lasts. If that state has
// ended, the result is late once.
func TestAResultCountsForItsStateInEveryForm(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, SlowCall: time.Hour}
	another := c
	another.Window, another.Probes, another.ProbeTimeout = time.Minute, 7, time.Hour
	reconfigure := func(c breaker.Config) func(b *breaker.Breaker) {
		return func(b *breaker.Breaker) { require.NoError(t, b.Reconfigure(c)) }
	}
	for state, begin := range map[breaker.State]func(b *breaker.Breaker){
		breaker.Closed:       func(*breaker.Breaker) {},
		breaker.HalfOpen:     func(b *breaker.Breaker) { b.OpenFor(0) },
		breaker.ForcedClosed: func(b *breaker.Breaker) { b.Force(breaker.ForcedClosed, "") },
		breaker.Shadow:       func(b *breaker.Breaker) { b.Force(breaker.Shadow, "") },
	} {
		for name, change := range map[string]struct {
			do    func(b *breaker.Breaker)
			stays bool
		}{
			"nothing":                    {func(*breaker.Breaker) {}, true},
			"the same config":            {reconfigure(c), true},
			"another config":             {reconfigure(another), true},
			"open underneath or at all":  {func(b *breaker.Breaker) { b.OpenFor(time.Hour) }, slices.Contains(overrides, state)},
			"reset underneath or at all": {func(b *breaker.Breaker) { b.Reset() }, slices.Contains(overrides, state)},
			"forced open":                {func(b *breaker.Breaker) { b.Force(breaker.ForcedOpen, "") }, false},
			"disabled":                   {func(b *breaker.Breaker) { b.Force(breaker.Disabled, "") }, false},
			"forced and released":        {func(b *breaker.Breaker) { b.Force(breaker.ForcedOpen, ""); b.Release() }, false},
		} {
			for verb, call := range callEndings {
				// a member, because it counts its calls in flight
				b := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: c}).Get(0)
				begin(b)
				require.Equal(t, state, b.State())
				called := false
				call(b, func() { called = true; change.do(b) })
				s := b.StatsNow()
				require.True(t, called)
				require.Zero(t, s.Active, "%v, %s, %s", state, name, verb)
				want := []int64{1, 0}
				if !change.stays {
					want = []int64{0, 1}
				}
				require.Equal(t, want, []int64{s.Totals.Failures, s.Late}, "%v, %s, %s", state, name, verb)
			}
		}
	}
}

// AfterOpen calls its function whatever opens the breaker.
func TestAfterOpenIsCalledForEveryWayToOpen(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Probes: 1, Cooldown: time.Hour}
	brief := c
	brief.HalfOpenTimeout = time.Nanosecond
	probe := func(b *breaker.Breaker) *breaker.Permit {
		p, err := b.Allow()
		require.NoError(t, err)
		return &p
	}
	closed, half := func(*breaker.Breaker) {}, func(b *breaker.Breaker) { b.OpenFor(0) }
	under := func(b *breaker.Breaker) { b.Force(breaker.ForcedClosed, ""); b.OpenFor(time.Hour) }
	for name, way := range map[string]struct {
		config      breaker.Config
		begin, open func(b *breaker.Breaker)
	}{
		"a verdict":          {c, closed, func(b *breaker.Breaker) { _ = b.Run(bg(), fail) }},
		"OpenFor":            {c, closed, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		"OpenFor, half-open": {c, half, func(b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		"ForcedOpen":         {c, half, func(b *breaker.Breaker) { b.Force(breaker.ForcedOpen, "") }},
		"a probe":            {c, half, func(b *breaker.Breaker) { _ = b.Run(bg(), fail) }},
		"a release":          {c, under, func(b *breaker.Breaker) { b.Release() }},
		"another config": {breaker.Config{MinCalls: 2, Probes: 2}, half, func(b *breaker.Breaker) {
			probe(b).Record(bg(), nil, breaker.Failure)
			require.NoError(t, b.Reconfigure(c))
		}},
		"a half-open time that is over": {brief, half, func(b *breaker.Breaker) {
			probe(b)
			for b.Check() == nil { // ends at once, unless the clock is coarse
				runtime.Gosched()
			}
		}},
	} {
		b := breaker.New("b", way.config)
		way.begin(b)
		require.NotContains(t, []breaker.State{breaker.Open, breaker.ForcedOpen}, b.State(), name)
		calls := 0
		b.AfterOpen(func() { calls++ })
		require.Zero(t, calls, name)
		way.open(b)
		require.Equal(t, 1, calls, name)
		require.Contains(t, []breaker.State{breaker.Open, breaker.ForcedOpen}, b.State(), name)
	}
}
