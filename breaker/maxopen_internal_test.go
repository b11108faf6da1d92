package breaker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// checkPlaces checks that exactly the keys that refuse calls have places.
func checkPlaces[K comparable](t *testing.T, g *Group[K], what any) {
	t.Helper()
	open := int64(0)
	for _, b := range g.All() {
		if b.Tripped() {
			open++
		}
	}
	require.Equal(t, open, g.places.taken.Load(), what)
}

// After each of many random steps the keys that refuse calls are those that a simple model says.
func TestMaxOpenIsAsItsModel(t *testing.T) {
	overrides := []State{ForcedOpen, ForcedClosed, Disabled, Shadow}
	for seed := range uint64(testenv.Repeat(60, 6)) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := Config{ConsecutiveFailures: 1, MinCalls: 100, Cooldown: time.Second, Probes: 1, Recovery: Off}
		if seed%3 == 0 {
			c.Recovery = 3 * time.Second
		}
		now, share := time.Unix(1e9, 0), r.Float64()
		g := newGroupAt[int]("g", GroupConfig{Breaker: c, MaxOpen: share, MaxKeys: 12}, now)
		for step := range 2000 {
			now = now.Add(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			key := r.IntN(15)
			b := g.getAt(now, key)
			what := fmt.Sprintf("seed %d, step %d, key %d", seed, step, key)
			switch n := r.IntN(40); {
			case n < 20:
				taken, members, before := g.places.taken.Load(), int64(g.members.Len()), b.StateAt(now)
				p, err := b.AllowAt(now)
				if err != nil {
					break
				}
				p.RecordAt(now, Failure)
				if before == Closed {
					room := share == 0 || taken == 0 || float64(taken+1) <= share*float64(members)+1e-6
					require.Equal(t, room, b.Tripped(), what)
				}
			case n < 32:
				if p, err := b.AllowAt(now); err == nil {
					p.RecordAt(now, Success)
				}
			case n == 32:
				b.forceAt(now, overrides[r.IntN(len(overrides))], "")
			case n < 35:
				b.releaseAt(now)
			case n == 35:
				b.openForAt(now, time.Duration(r.Int64N(int64(2*time.Second))))
			case n == 36:
				b.resetAt(now)
			case n == 37:
				g.Forget(key)
			case n == 38:
				share = float64(r.IntN(11)) / 10
				require.NoError(t, g.reconfigureAt(now, GroupConfig{Breaker: c, MaxOpen: share, MaxKeys: 12}))
			case n == 39:
				c.Force = [...]State{"", "", ForcedOpen}[r.IntN(3)]
				require.NoError(t, g.reconfigureAt(now, GroupConfig{Breaker: c, MaxOpen: share, MaxKeys: 12}))
			}
			checkPlaces(t, g, what)
		}
	}
}

// All goroutines together never hold more places than there are, even if members come and go at the
// same time.
func TestPlacesAreNeverExceeded(t *testing.T) {
	for _, most := range []int64{1, 2, 5} {
		var members, held, highest atomic.Int64
		members.Store(10 * most)
		s := &openPlaces{members: &members}
		s.setShare(0.1)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for i := range 100_000 {
					if !s.take() {
						continue
					}
					if n := held.Add(1); n > highest.Load() {
						highest.Store(n)
					}
					if i%64 == 0 {
						members.Store(10*most + 9) // more members, but not enough for another place
						runtime.Gosched()
						members.Store(10 * most)
					}
					held.Add(-1)
					s.taken.Add(-1)
				}
			})
		}
		group.Wait()
		require.LessOrEqual(t, highest.Load(), most)
		require.Zero(t, s.taken.Load())
	}
}

// Many goroutines open, close, force and forget keys. No place is lost, and calls alone never open
// more keys than the bound.
func TestConcurrentOpeningsKeepTheBound(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		c := Config{ConsecutiveFailures: 1, MinCalls: 1000, Cooldown: time.Hour}
		g := NewGroup[int]("g", GroupConfig{Breaker: c, MaxOpen: 0.2})
		for key := range 100 {
			g.Get(key)
		}
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 7))
				for range 3000 {
					b := g.Get(r.IntN(100))
					if p, err := b.Allow(); err == nil {
						p.Record(t.Context(), nil, Outcome(r.IntN(2)))
					}
					if byHand {
						actByHand(g, b, r)
					} else if n := g.places.taken.Load(); n > 20 {
						t.Errorf("%d of 100 keys are open", n)
					}
				}
			})
		}
		group.Wait()
		checkPlaces(t, g, byHand)
		if !byHand {
			require.Equal(t, int64(20), g.places.taken.Load())
		}
	}
}

func actByHand(g *Group[int], b *Breaker, r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		b.Reset()
	case 1:
		b.OpenFor(time.Hour)
	case 2:
		b.Force(ForcedOpen, "")
	case 3:
		b.Release()
	case 4:
		g.Forget(r.IntN(100))
	}
}
