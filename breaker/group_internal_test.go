package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/tally"
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

// A result that is recorded while its breaker is evicted counts once, for the breaker that the key
// has then.
func TestAResultCountsOnceWhileItsBreakerIsEvicted(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxKeys: 1, MaxSeries: Off}, t0)
	now, both := t0, make(chan struct{})
	results := make(chan func())
	go func() {
		for result := range results {
			both <- struct{}{}
			result()
			both <- struct{}{}
		}
	}()
	b, first := g.GetAt(t0, 0), 0
	rounds := testenv.Repeat(50_000, 8_000)
	for i := range rounds {
		now = now.Add(time.Minute) // what failed before is no longer in the window
		u := now
		p, err := b.AllowAt(u)
		require.NoError(t, err)
		o := []Outcome{Failure, Ignored, Success}[i%3]
		results <- func() { p.RecordAt(u, o) }
		<-both
		for range i % 50 {
			runtime.KeepAlive(i) // so that either goroutine may be the first
		}
		evictions := g.evictions.Load()
		g.GetAt(u, 1)
		if g.evictions.Load() > evictions {
			first++
		}
		<-both
		c := b.CountsAt(u)
		if o != Ignored { // a breaker that has only ignored calls may be evicted
			require.EqualValues(t, 1, c.Successes+c.Failures, "round %d, %v", i, o)
		}
		if i%3 == 2 {
			b = g.GetAt(u, 0) // in other rounds b may be a breaker that was evicted before
		}
	}
	close(results)
	require.Equal(t, rounds, countedCalls(g))
	t.Logf("evicted in %d of %d rounds", first, rounds)
}

// A call that was recorded while its breaker was evicted is passed on only if the eviction has
// missed it.
func TestOnlyAResultThatTheEvictionHasMissedIsPassedOn(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxKeys: 1, MaxSeries: Off}, t0)
	b := g.GetAt(t0, 0)
	p := b.phase.Load()
	p.tally.Record(0, tally.Ignored, 0) // seen
	g.GetAt(t0, 1)
	require.Equal(t, evicted, b.phase.Load().state)
	p.tally.Record(0, tally.Ignored, 0) // missed
	for call := range 2 {
		gone, missed := b.missedByEviction()
		require.True(t, gone)
		require.Equal(t, call == 0, missed)
	}
}

// A refusal that is counted after its breaker was evicted counts for the breaker that the key has
// then.
func TestARefusalThatTheEvictionHasNotSeenIsPassedOn(t *testing.T) {
	g := NewGroup[int]("g", GroupConfig{MaxKeys: 1, MaxSeries: Off})
	b := g.Get(0)
	require.Error(t, b.Refuse("a reason"))
	g.Get(1)
	require.Equal(t, 1, countedCalls(g))
	_, _ = b.refuse(&OpenError{}), b.refuse(&OpenError{})
	require.Equal(t, 3, countedCalls(g))
	require.EqualValues(t, 2, g.Get(0).Totals().Refused)
}

// After any traffic the internal counts of a group agree.
func TestCountsOfAGroupAddUp(t *testing.T) {
	g := NewGroup[int]("g", GroupConfig{Breaker: Config{Window: time.Millisecond, Buckets: 1, MinCalls: 5}, MaxKeys: 300, MaxSeries: 20})
	each := testenv.Repeat(10_000, 4_000)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r, held := rand.New(rand.NewPCG(uint64(worker), 2)), make([]*Breaker, 50)
			for i := range each {
				b := g.Get(int(r.ExpFloat64() * 300))
				held[i%len(held)] = b
				b, o := held[r.IntN(min(i+1, len(held)))], Outcome(r.IntN(3))
				if o == Success {
					_ = b.Run(t.Context(), func(context.Context) error { return nil })
				} else if p, err := b.Allow(); err == nil {
					p.Record(o)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, g.evictions.Load())
	require.Equal(t, 4*each, countedCalls(g), "no call is lost to an eviction")
	members := 0
	for i := range g.shards {
		s := &g.shards[i]
		require.LessOrEqual(t, len(s.ring), s.max)
		require.Len(t, s.byKey, len(s.ring))
		members += len(s.ring)
		for _, m := range s.ring {
			require.Same(t, m, s.byKey[m.key])
			require.NotEqual(t, evicted, m.breaker.phase.Load().state)
		}
	}
	require.EqualValues(t, members, g.members.Load())
}
