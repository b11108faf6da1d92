package weir

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// NewGroupWithBuckets is NewGroup for a group that has room for few token buckets.
func NewGroupWithBuckets[K comparable](name string, c GroupConfig, buckets int) *Group[K] {
	return newGroup[K](name, c, buckets)
}

func TestHoldsAreBounded(t *testing.T) {
	s := &holdTable[int]{max: 100}
	for i := range 100_000 {
		h := keyHold[int]{table: s, key: i}
		h.extend(int64(i), time.Hour, 0, 0)
		_, held := h.endOf(int64(i))
		require.True(t, held, "the newest hold is stored")
		require.LessOrEqual(t, s.ends.Len(), s.max)
	}
	require.Equal(t, s.max, s.ends.Len())
	h := keyHold[int]{table: s, key: 1}
	_, held := h.endOf(s.last.Load())
	require.False(t, held)
	require.Zero(t, s.ends.Len(), "no entries remain after the last hold has ended")
	require.Zero(t, s.last.Load())
}

// Holds that end early do not evict a hold that ends later.
func TestHoldThatEndsFirstIsEvicted(t *testing.T) {
	s := &holdTable[int]{max: 10}
	long := keyHold[int]{table: s, key: -1}
	long.extend(0, time.Hour, 0, 0)
	for i := range 10_000 {
		h := keyHold[int]{table: s, key: i}
		h.extend(int64(i), time.Minute, 0, 0)
	}
	end, held := long.endOf(10_000)
	require.True(t, held)
	require.Equal(t, int64(time.Hour), end)
}

func TestEndedHoldsAreEvicted(t *testing.T) {
	for first := range 100 { // the hashes decide where the holds lie
		s := &holdTable[int]{max: 10}
		for i := range 10 {
			h := keyHold[int]{table: s, key: first + i}
			h.extend(0, time.Duration(1+i), 0, 0)
		}
		late := keyHold[int]{table: s, key: first + 10}
		late.extend(9, time.Second, 0, 0)
		require.LessOrEqual(t, s.ends.Len(), 10)
		require.Zero(t, s.evicted.Load())
		last := keyHold[int]{table: s, key: first + 9}
		_, held := last.endOf(9)
		require.True(t, held, "it has not ended")
		end, held := late.endOf(9)
		require.True(t, held)
		require.Equal(t, int64(9+time.Second), end)
	}
}

// Times before the epoch, around it, and at the limits of int64.
func TestHoldLastsAtAnyTime(t *testing.T) {
	for _, at := range []int64{math.MinInt64, -int64(time.Hour), -5, -1, 0, 1, math.MaxInt64 - 9} {
		for _, d := range []time.Duration{1, 5, time.Second, math.MaxInt64} {
			h := keyHold[int]{table: &holdTable[int]{max: 1}}
			h.extend(at, d, 0, 0)
			last := at + min(int64(d)-1, math.MaxInt64-1-max(at, 0))
			_, held := h.endOf(at)
			require.True(t, held, "%d for %d", at, d)
			_, held = h.endOf(last)
			require.True(t, held, "%d for %d", at, d)
			if last < math.MaxInt64-1 {
				_, held = h.endOf(last + 2)
				require.False(t, held, "%d for %d", at, d)
			}
		}
	}
}

// A key is forgotten between the moment at which a call looks for the gate of the key and the
// moment at which it has a slot of that gate. The call returns that slot and takes one of the gate
// that the key has now, so that the key never has more calls than its bound.
func TestACallThatTookASlotOfAForgottenKeyTakesANewOne(t *testing.T) {
	for name, take := range map[string]func(g *Gate, forget func()) (slot, bool){
		"at once": func(g *Gate, forget func()) (slot, bool) {
			return g.setup.Load().takeSlot(func(l *inflight.Limiter) (time.Duration, bool, bool) {
				start, held, ok := inBound.Occupy(l)
				forget()
				return start, held, ok
			})
		},
		"after a wait": func(g *Gate, forget func()) (slot, bool) {
			wait := func(ctx context.Context, l *inflight.Limiter, maxWait time.Duration) (time.Duration, bool, error) {
				start, held, err := inBound.Wait(ctx, l, maxWait)
				forget()
				return start, held, err
			}
			s, err := g.setup.Load().waitForSlot(t.Context(), g.now().Add(time.Minute), wait)
			return s, err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := NewGroup[string]("g", GroupConfig{Gate: Config{MaxConcurrent: 1}})
			old := group.Get("a")
			forgotten := 0
			s, ok := take(old, func() {
				if forgotten++; forgotten == 1 {
					require.True(t, group.Forget("a"))
					group.Get("a")
				}
			})
			require.True(t, ok)
			require.Equal(t, 2, forgotten, "slots that the call took")
			require.Same(t, group.Get("a"), s.gate.Gate)
			require.Zero(t, old.setup.Load().inFlight.InFlight())
			require.Equal(t, 1, s.gate.inFlight.InFlight())
			s.release()
			require.Zero(t, s.gate.inFlight.InFlight())
		})
	}
}

// The config changes between the moment at which a call finds no slot and the moment at which it
// begins to wait.
func TestACallThatBeginsToWaitAfterAChangeUsesTheNewConfig(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		after Config
		took  time.Duration
		made  bool
	}{
		"no bound":          {Config{}, 0, true},
		"a shorter MaxWait": {Config{MaxConcurrent: 1, MaxWait: 10 * ms}, 10 * ms, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New("g", Config{MaxConcurrent: 1, MaxWait: time.Hour})
				_, err := g.Allow(t.Context())
				require.NoError(t, err)
				old := g.setup.Load()
				require.NoError(t, g.Reconfigure(c.after))
				start := time.Now()
				err = old.acquireInOrder(&attempt{ctx: t.Context(), now: old.now()}, new(Permit))
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, c.made, err == nil)
				require.Empty(t, g.waits.all)
				require.Zero(t, g.Stats().Waiting)
			})
		})
	}
}

// A second look at the breaker would count in a recovering breaker as a second call. If the breaker
// opens meanwhile, it interrupts a call that waits, and gives no permit.
func TestACallThatPassesTheStagesAgainLooksAtTheBreakerOnce(t *testing.T) {
	g := New("g", Config{})
	a := &attempt{ctx: t.Context(), now: g.now()}
	for range 3 {
		at, err := g.setup.Load().pass(a)
		require.NoError(t, err)
		require.Equal(t, allStages, at)
		g.breaker.Force(breaker.ForcedOpen, "")
	}
	require.Zero(t, g.Totals().Refused)
	require.ErrorIs(t, g.setup.Load().admit(a, &Permit{}), breaker.ErrOpen)
}

// endingHold ends while a call is refused, as if another call had cleared the table.
type endingHold struct {
	*ownHold
	asked bool
}

func (h *endingHold) endOf(at int64) (int64, bool) {
	held := !h.asked
	h.asked = true
	return at + int64(time.Second), held
}

func TestACallRefusedByAHoldThatEndsIsToldWhenItEnded(t *testing.T) {
	g := New("g", Config{})
	g.hold = &endingHold{ownHold: g.hold.(*ownHold)}
	var last atomic.Int64
	last.Store(math.MaxInt64)
	g.lastHold.Store(&last)
	err := g.Run(t.Context(), func(context.Context) error { return nil })
	require.ErrorIs(t, err, ErrRefused)
	require.LessOrEqual(t, RetryAfter(err), time.Second)
}

// ReconfigureGates replaces the config of the gates of a group, and keeps its other fields.
func (g *Group[K]) ReconfigureGates(c Config) error {
	b := g.parts.Load().breakers
	return g.Reconfigure(GroupConfig{Gate: c, MaxKeys: b.MaxKeys, MaxSeries: b.MaxSeries, MaxOpen: b.MaxOpen})
}
