package sim

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runOneGuard runs a guard in front of a healthy service.
func runOneGuard(call func(ctx context.Context, f func(context.Context) error) error) Figures {
	w := World{Service: healthyService, Clients: []Client{{Rate: 100, Timeout: sec}}, For: 2 * sec}
	return Run(w, Maker{Name: "tested", New: func(Setting) Guard { return testGuard(call) }}, 7)
}

// panicOf returns the error that f panics with.
func panicOf(t *testing.T, f func()) (err error) {
	defer func() {
		var ok bool
		err, ok = recover().(error)
		require.True(t, ok)
	}()
	f()
	return nil
}

func TestABrokenGuardIsReported(t *testing.T) {
	for text, call := range map[string]func(ctx context.Context, f func(context.Context) error) error{
		"oh dear": func(context.Context, func(context.Context) error) error { panic("oh dear") },
		"the guard panicked: <nil>": func(context.Context, func(context.Context) error) error {
			runtime.Goexit()
			return nil
		},
		"called the function twice": func(ctx context.Context, f func(context.Context) error) error {
			return errors.Join(f(ctx), f(ctx))
		},
		"no error for an attempt that failed": func(context.Context, func(context.Context) error) error { return nil },
		"have not returned": func(context.Context, func(context.Context) error) error {
			for {
				<-time.After(10 * time.Minute)
			}
		},
		"the bubble has not ended": func(ctx context.Context, f func(context.Context) error) error {
			go func() { select {} }()
			return f(ctx)
		},
	} {
		err := panicOf(t, func() { runOneGuard(call) })
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, `guard "tested", seed 7`)
	}
}

func TestAGuardMayGiveUpBeforeTheDeadline(t *testing.T) {
	errShort := errors.New("short")
	w := World{
		Service: Service{Servers: 1e6, Time: Constant(300 * ms)},
		Clients: []Client{{Rate: 100, Timeout: sec}},
		For:     10 * sec,
	}
	own := map[string]func(ctx context.Context, f func(context.Context) error) error{
		"context": func(ctx context.Context, f func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, 200*ms)
			defer cancel()
			return f(ctx)
		},
		"goroutine": func(ctx context.Context, f func(context.Context) error) error {
			result := make(chan error, 1)
			go func() { result <- f(ctx) }()
			select {
			case err := <-result:
				return err
			case <-time.After(200 * ms):
				return errShort
			}
		},
	}
	for name, call := range own {
		t.Run(name, func(t *testing.T) {
			f := Run(w, Maker{Name: name, New: func(Setting) Guard { return testGuard(call) }}, 1)
			require.Positive(t, f.Offered)
			require.Equal(t, f.Offered, f.Failed)
			require.Equal(t, f.Offered, f.Sent)
			require.Equal(t, f.Offered, f.Abandoned)
			require.Equal(t, f.Worked, f.Wasted)
			require.Equal(t, time.Duration(f.Offered)*300*ms, f.Worked)
		})
	}
}

// The service must not depend on which of two goroutines that wake at once comes first, and must
// see calls that a guard has held back at the moment that it lets them go.
func TestAGuardMayHoldCallsBack(t *testing.T) {
	w := World{
		Service: Service{Servers: 1, Time: Exponential(10 * ms), Queue: 1e6},
		Clients: []Client{{Rate: 50, Timeout: 10 * sec}},
		For:     10 * sec,
	}
	run := func() (all []Figures) {
		for range 10 {
			all = append(all, Run(w, Maker{Name: "batches", New: func(s Setting) Guard {
				return testGuard(func(ctx context.Context, f func(context.Context) error) error {
					// At the end of each second, all calls of that second go at once.
					<-time.After(time.Second - s.run.now()%time.Second)
					return f(ctx)
				})
			}}, 5))
		}
		return all
	}
	all := run()
	require.Equal(t, all[0].Offered, all[0].Good)
	require.Greater(t, all[0].Crowd, 0.08, "all calls of a second in one instant")
	for _, f := range all {
		require.Equal(t, all[0], f)
	}
}

func TestAGuardIsClosedAtTheEnd(t *testing.T) {
	w := World{Service: healthyService, Clients: []Client{{Rate: 100, Processes: 3, Timeout: sec}}, For: 2 * sec}
	closed := 0
	Run(w, Maker{Name: "closes", New: func(Setting) Guard { return closingGuard{None().New(Setting{}), &closed} }}, 1)
	require.Equal(t, 3, closed)
}

type closingGuard struct {
	Guard
	closed *int
}

func (c closingGuard) Close() { *c.closed++ }
