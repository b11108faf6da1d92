package breaker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
					p.Record(t.Context(), nil, o)
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

// panickingError is an error whose method panics when the outcome of a call is found.
type panickingError struct{}

func (panickingError) Error() string { return "down" }
func (panickingError) Is(error) bool { panic("Is") }

// A call ends however user code that is called at its end behaves, so that its key can be evicted.
func TestACallEndsHoweverUserCodeEnds(t *testing.T) {
	fail := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	goexit := func() { runtime.Goexit() }
	for name, c := range map[string]struct {
		config Config
		err    error
	}{
		"OnChange calls Goexit":        {Config{ConsecutiveFailures: 1, OnChange: func(Change) { goexit() }}, context.DeadlineExceeded},
		"DescribeFailure calls Goexit": {Config{DescribeFailure: func(context.Context, error, *FailedCall) { goexit() }}, context.DeadlineExceeded},
		"DescribeFailure panics":       {Config{DescribeFailure: func(context.Context, error, *FailedCall) { panic("describe") }}, context.DeadlineExceeded},
		"Is panics":                    {Config{}, panickingError{}},
		"Classify panics":              {Config{Classify: func(error) Outcome { panic("classify") }}, context.DeadlineExceeded},
	} {
		for verb, call := range map[string]func(b *Breaker){
			"Run": func(b *Breaker) { _ = b.Run(t.Context(), fail(c.err)) },
			"Record": func(b *Breaker) {
				if p, err := b.Allow(); err == nil {
					p.Record(t.Context(), nil, Failure)
				}
			},
			"Done": func(b *Breaker) {
				if p, err := b.Allow(); err == nil {
					p.Done(t.Context(), c.err)
				}
			},
		} {
			b := NewGroup[string]("g", GroupConfig{Breaker: c.config}).Get("a")
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				call(b)
			}()
			<-done
			require.Zero(t, b.active.Load(), "%s, %s", name, verb)
		}
	}
}

// No count of the others falls if a member leaves while they are added up.
func TestAMemberThatLeavesWhileItIsAddedUp(t *testing.T) {
	g := NewGroup[string]("g", GroupConfig{MaxSeries: Off, Breaker: Config{Latency: true}})
	b := g.Get("a")
	m, err := b.Allow()
	require.NoError(t, err)
	read := func(meanwhile func()) (n int64) {
		_, others := g.collect(func(to *sum, of *Breaker, _ time.Time) {
			if of == b {
				meanwhile()
			}
			to.addLatency(of)
		})
		all := others.durations()
		return all.Count()
	}
	first := read(func() {
		require.True(t, g.Forget("a"))
		m.Record(t.Context(), nil, Success)
	})
	require.EqualValues(t, 1, first)
	require.EqualValues(t, 1, read(func() {}))
}

// Two keys with the same text never have series at once, even if the first leaves while the second
// is added.
func TestKeysWithTheSameTextAreShownOnce(t *testing.T) {
	g := NewGroup[any]("g", GroupConfig{MaxKeys: 40_000, MaxSeries: 1})
	for try := range 60 {
		g.Get(try)
		text := fmt.Sprint(try)
		for i := range 20 {
			g.Get(fmt.Sprint("k", i))
		}
		n := 0
		own, _ := g.collect(func(to *sum, of *Breaker, now time.Time) {
			if n++; n == 10 {
				g.Forget(try)
				g.Get(text)
			}
			to.addMetrics(of, now)
		})
		require.LessOrEqual(t, len(own), 1)
		g.Forget(text)
	}
}

// Forget calls OnChange outside all locks, also if it finds that the clock is another one.
func TestForgetInAnotherClock(t *testing.T) {
	var g *Group[string]
	called := 0
	g = NewGroup[string]("g", GroupConfig{MaxKeys: 8, MaxSeries: Off, Breaker: Config{OnChange: func(c Change) {
		if c.To == Closed {
			called++
			g.Get("other")
		}
	}}})
	g.Get("a").OpenFor(time.Hour)
	synctest.Test(t, func(*testing.T) { g.Forget("a") })
	require.Equal(t, 1, called)
}
