package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
)

// countedCalls returns the number of calls in the metrics of the group, including late results.
func countedCalls[K comparable](g *Group[K]) (n int) {
	for s, v := range g.Observe {
		if s.Instrument == instrument.BreakerCalls || s.Instrument == instrument.BreakerLateResults {
			n += int(v)
		}
	}
	return n
}

// A call in flight keeps its key: however many other keys come meanwhile, its result counts for the
// breaker that the key has then.
func TestAResultCountsForTheBreakerOfItsKeyHoweverManyKeysCome(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxKeys: 2, MaxSeries: Off}, t0)
	evictions := make(chan time.Time)
	both := make(chan struct{})
	go func() {
		for key := 1; ; key++ {
			u, more := <-evictions
			if !more {
				return
			}
			g.GetAt(u, key)
			both <- struct{}{}
		}
	}()
	rounds := testenv.Repeat(50_000, 8_000)
	for i := range rounds {
		u := t0.Add(time.Duration(i) * time.Minute) // what failed before is no longer in the window
		b := g.GetAt(u, 0)
		p, err := b.AllowAt(u)
		require.NoError(t, err)
		evictions <- u
		for range i % 50 {
			runtime.KeepAlive(i) // so that either goroutine may be the first
		}
		o := []Outcome{Failure, Success}[i%2]
		require.True(t, p.RecordAt(u, o))
		<-both
		require.Same(t, b, g.GetAt(u, 0))
		c := b.CountsAt(u)
		require.EqualValues(t, 1, c.Successes+c.Failures, "round %d, %v", i, o)
	}
	close(evictions)
	require.Equal(t, rounds, countedCalls(g))
	require.Positive(t, g.members.Evictions())
}

// Whatever the traffic, the sums of a group have each call of a member once.
func TestCountsOfAGroupAddUp(t *testing.T) {
	g := NewGroup[int]("g", GroupConfig{Breaker: Config{Window: time.Millisecond, Buckets: 1, MinCalls: 5}, MaxKeys: 300, MaxSeries: Off})
	each := testenv.Repeat(10_000, 4_000)
	var left atomic.Int64 // calls of breakers that may have left the group before the call began
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 2))
			for range each {
				b, o := g.Get(int(r.ExpFloat64()*300)), Outcome(r.IntN(3))
				if o == Success {
					_ = b.Run(t.Context(), func(context.Context) error { return nil })
				} else if p, err := b.Allow(); err == nil {
					p.Record(o)
				}
				if b.member.left.Load() {
					left.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, g.members.Evictions())
	require.LessOrEqual(t, countedCalls(g), 4*each)
	require.GreaterOrEqual(t, countedCalls(g), 4*each-int(left.Load()))
	require.Less(t, left.Load(), int64(each/100))
}

// The override of a breaker that has left is not taken for that of the breaker that the key has
// now.
func TestABreakerThatHasLeftIsNotUnderTheOverrideOfItsGroup(t *testing.T) {
	g := NewGroup[string]("g", GroupConfig{})
	old := g.Get("a")
	require.True(t, g.Forget("a"))
	g.ForceAll(Disabled)
	under := func(b *Breaker) (asked bool) {
		b.ownUnder(0, func(_, own State) State {
			asked = true
			return own
		})
		return asked
	}
	require.True(t, under(g.Get("a")))
	require.False(t, under(old))
}
