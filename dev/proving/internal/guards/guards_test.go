package guards_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

var errService = errors.New("service: down")

func succeed(context.Context) error { return nil }
func fail(context.Context) error    { return errService }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

const timeout = 500 * time.Millisecond

var testSetting = sim.Setting{World: sim.World{Clients: []sim.Client{{Timeout: timeout}}}}

// inBubble runs test for each guard in a bubble of its own. A goroutine that a guard leaves behind
// fails it.
func inBubble(t *testing.T, test func(*testing.T, sim.Maker, sim.Guard)) {
	for _, m := range guards.All() {
		t.Run(m.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := m.New(testSetting)
				test(t, m, g)
				if c, ok := g.(interface{ Close() }); ok {
					c.Close()
				}
			})
		})
	}
}

// outcomeCounts holds the outcomes of some calls.
type outcomeCounts struct{ good, failed, refused int }

// call calls f n times, 10 ms apart, with a deadline for each call, and waits for all results.
func call(t *testing.T, g sim.Guard, n int, f func(context.Context) error) (s outcomeCounts) {
	results := make(chan error, n)
	for range n {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			results <- g.Call(ctx, f)
		}()
		time.Sleep(10 * time.Millisecond)
	}
	for range n {
		err := <-results
		_, refused := g.Refusal(err)
		switch {
		case err == nil:
			s.good++
		case refused:
			s.refused++
		default:
			s.failed++
		}
	}
	return s
}

func TestAHealthyServiceGetsAllCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, _ sim.Maker, g sim.Guard) {
		require.Equal(t, outcomeCounts{good: 300}, call(t, g, 300, succeed))
		require.Zero(t, g.Openings())
	})
}

func TestAnErrorIsReturnedAsItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, _ sim.Maker, g sim.Guard) {
		err := g.Call(t.Context(), fail)
		require.Same(t, errService, err)
		_, refused := g.Refusal(err)
		require.False(t, refused)
	})
}

// isLimiter lists guards that decide by the latency and the number of calls in flight, not by
// errors.
func isLimiter(m sim.Maker) bool {
	return strings.Contains(m.Name, "limit")
}

// isThrottle lists guards that refuse a share of the calls, and never all of them.
func isThrottle(m sim.Maker) bool {
	switch m.Name {
	case "weir throttle", "failsafe throttler", "failsafe throttler, tuned", "go-zero", "aegis", "aegis, tuned":
		return true
	}
	return false
}

func TestAnOutageIsNoticedAndItsEndToo(t *testing.T) {
	for _, outage := range []func(context.Context) error{fail, hang} {
		inBubble(t, func(t *testing.T, m sim.Maker, g sim.Guard) {
			call(t, g, 100, succeed)
			during := call(t, g, 1500, outage)
			if isLimiter(m) || m.Name == budgetAlone {
				return
			}
			require.Greater(t, during.refused, 300)
			require.Equal(t, !isThrottle(m), g.Openings() > 0)
			time.Sleep(2 * time.Minute) // the longest default is a minute
			call(t, g, 200, succeed)
			require.Equal(t, outcomeCounts{good: 100}, call(t, g, 100, succeed))
		})
	}
}

func TestALimiterRefusesCallsAboveItsLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, m sim.Maker, g sim.Guard) {
		if !isLimiter(m) {
			return
		}
		results := make(chan error)
		for range 200 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				results <- g.Call(ctx, hang)
			}()
		}
		refused := 0
		for range 200 {
			if _, is := g.Refusal(<-results); is {
				refused++
			}
		}
		require.GreaterOrEqual(t, refused, 100)
	})
}

// The processes of a fleet must not draw the same random numbers, and the same seed must give the
// same numbers again.
func TestEachProcessDrawsItsOwnNumbersFromTheSeed(t *testing.T) {
	for _, m := range guards.All() {
		if m.Name != "go-zero" && m.Name != "aegis, tuned" {
			continue
		}
		refusals := func(seed uint64, process int) (s outcomeCounts) {
			synctest.Test(t, func(t *testing.T) {
				g := m.New(sim.Setting{World: testSetting.World, Seed: seed, Process: process})
				s = call(t, g, 3000, fail)
			})
			return s
		}
		first := refusals(1, 0)
		require.Equal(t, first, refusals(1, 0), m.Name)
		require.NotEqual(t, first, refusals(1, 1), m.Name)
		require.NotEqual(t, first, refusals(2, 0), m.Name)
	}
}
