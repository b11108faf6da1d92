package breaker

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A result and the letting go of its breaker, at the same moment: whichever comes
// first, the breaker is kept.
func TestAResultKeepsTheBreakerThatIsBeingLetGo(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxKeys: 1, MaxSeries: Off}, t0)
	g.Get(0)
	m, both := g.shards[0].places[0], make(chan struct{})
	b, now := m.alive(), t0
	results := make(chan *Permit)
	go func() {
		for p := range results {
			both <- struct{}{}
			p.DoneAt(now, Failure)
			both <- struct{}{}
		}
	}()
	let := 0
	for i := range 50_000 {
		now = now.Add(time.Minute) // what failed before is no longer in the window
		p, err := b.AllowAt(now)
		require.NoError(t, err)
		results <- &p
		<-both
		for range i % 50 {
			runtime.KeepAlive(i) // so that either may be the first
		}
		gone := m.release(now, g)
		<-both
		require.Same(t, b, m.kept.Load(), "round %d, let go: %t", i, gone)
		if gone {
			let++
			g.extra.Add(-1) // it has its place still
		}
		require.Zero(t, g.extra.Load(), "round %d, let go: %t", i, gone)
	}
	close(results)
	t.Logf("let go before the result: %d times", let)
}

// After any traffic the books of a group agree with each other.
func TestTheBooksOfAGroupAgree(t *testing.T) {
	g := NewGroup[int]("g", GroupConfig{Breaker: Config{Window: time.Millisecond, Buckets: 1, MinCalls: 5}, MaxKeys: 300, MaxSeries: 20})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r, held := rand.New(rand.NewPCG(uint64(worker), 2)), make([]*Breaker, 50)
			for i := range 10_000 {
				b := g.Get(int(r.ExpFloat64() * 300))
				held[i%len(held)] = b
				if p, err := held[r.IntN(min(i+1, len(held)))].Allow(); err == nil {
					p.Done(Outcome(r.IntN(3)))
				}
				if i%1000 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, g.evictions.Load())
	placed, extra := 0, 0
	for i := range g.shards {
		s := &g.shards[i]
		require.LessOrEqual(t, len(s.places), s.max)
		placed += len(s.places)
		for _, m := range s.places {
			require.False(t, m.loose)
			require.NotNil(t, m.kept.Load())
			require.Same(t, m, s.byKey[m.key])
		}
		for at, m := range s.loose {
			require.True(t, m.loose && !m.seated && !m.dropped.Load())
			require.Equal(t, at, m.at)
			if m.kept.Load() != nil {
				extra++
			}
		}
		dropped := 0
		for _, m := range *s.census.Load() {
			if m.dropped.Load() {
				dropped++
			}
		}
		require.Equal(t, s.dropped, dropped)
		require.Len(t, *s.census.Load(), len(s.places)+len(s.loose)+dropped)
		require.LessOrEqual(t, len(s.byKey), len(s.places)+len(s.loose))
	}
	require.EqualValues(t, placed, g.placed.Load())
	require.EqualValues(t, extra, g.extra.Load())
}
