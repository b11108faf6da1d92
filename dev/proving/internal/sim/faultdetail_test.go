package sim_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func TestSlowShareSlowsThatShareOfTheCalls(t *testing.T) {
	world := sim.World{
		Service: sim.Service{Servers: 1000, Time: sim.Constant(10 * time.Millisecond)},
		Faults:  []sim.Fault{{Span: sim.Span{To: time.Minute}, Slower: 100, SlowShare: 0.1}},
		Clients: []sim.Client{{Rate: 100, Timeout: 500 * time.Millisecond}},
		For:     time.Minute,
	}
	f := sim.Run(world, sim.None(), 1)
	require.InDelta(t, 0.1, float64(f.Failed)/float64(f.Offered), 0.02)
	require.Equal(t, 10*time.Millisecond, f.Slowest, "the other calls are as fast as ever")
	world.Faults[0].SlowShare = 0
	require.Zero(t, sim.Run(world, sim.None(), 1).Good, "all calls by default")
	world.Faults[0].SlowShare = 1.5
	require.ErrorContains(t, world.Validate(), "SlowShare is 1.5")
}

// announcementGuard is a guard that records the announcements of the service.
type announcementGuard struct {
	mu    sync.Mutex
	began time.Time
	ends  []time.Duration
}

func (e *announcementGuard) Call(ctx context.Context, f func(context.Context) error) error {
	err := f(ctx)
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ends = append(e.ends, time.Since(e.began)+asks.RetryAfter())
	}
	return err
}

func (e *announcementGuard) Refusal(error) (time.Duration, bool) { return 0, false }
func (e *announcementGuard) Openings() int                       { return 0 }

func TestServiceAnnouncesTheEndOfAFault(t *testing.T) {
	world := sim.World{
		Service: sim.Service{Servers: 10, Time: sim.Constant(time.Millisecond), RetryAfter: 7 * time.Second},
		Faults:  []sim.Fault{{Span: sim.Span{From: 5 * time.Second, To: 30 * time.Second}, Down: true, TellsEnd: true}},
		Clients: []sim.Client{{Rate: 10, Timeout: time.Second}},
		For:     time.Minute,
	}
	var guard *announcementGuard
	maker := sim.Maker{Name: "ears", New: func(sim.Setting) sim.Guard {
		guard = &announcementGuard{began: time.Now()}
		return guard
	}}
	sim.Run(world, maker, 1)
	require.Greater(t, len(guard.ends), 100)
	for _, end := range guard.ends {
		require.Equal(t, 30*time.Second, end)
	}
	world.Faults[0].TellsEnd = false
	sim.Run(world, maker, 1)
	require.Greater(t, guard.ends[50], guard.ends[0], "7 s after each failure")
}
