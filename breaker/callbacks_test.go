package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// callbacks are the functions of the program that a breaker and a group call.
var callbacks = []string{
	"Trip", "SharedCounts", "Classify", "DescribeFailure", "Trace", "OnChange", "yield of All",
	"yield of Observe", "yield of Histograms", "yield of the group's Observe", "yield of the group's Histograms",
}

// useCallbacks makes a group whose callbacks call in with their names, and uses it in a way that
// calls each of them.
func useCallbacks(in func(callback string, g *breaker.Group[string], c breaker.Config)) {
	var g *breaker.Group[string]
	c := breaker.Config{Latency: true, KeepFailures: 3}
	call := func(callback string) bool { in(callback, g, c); return true }
	c.Trip = func(window.Counts) (string, bool) { call("Trip"); return "", false }
	c.SharedCounts = func() window.Counts { call("SharedCounts"); return window.Counts{} }
	c.Classify = func(err error) breaker.Outcome { call("Classify"); return breaker.DefaultClassify(err) }
	c.DescribeFailure = func(context.Context, error, *breaker.FailedCall) { call("DescribeFailure") }
	c.Trace = func(context.Context) (trace, span string) { call("Trace"); return "a", "b" }
	c.OnChange = func(breaker.Change) { call("OnChange") }
	g = breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: c})
	_ = g.Get("a").Run(bg(), fail)
	_ = g.Get("a").Run(bg(), succeed)
	if permit, err := g.Get("a").Allow(); err == nil {
		permit.Done(bg(), errDown)
	}
	b := g.Get("a")
	g.All()(func(string, *breaker.Breaker) bool { return call("yield of All") })
	b.Observe(func(*stat.Series, float64) bool { return call("yield of Observe") })
	b.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of Histograms") })
	g.Observe(func(*stat.Series, float64) bool { return call("yield of the group's Observe") })
	g.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of the group's Histograms") })
	b.OpenFor(0)
}

// useEverything calls the methods of a group and its breakers, for a key in use and a new one.
func useEverything(g *breaker.Group[string], c breaker.Config) {
	for _, key := range []string{"a", "b"} {
		b := g.Get(key)
		_ = b.Run(bg(), fail)
		_ = b.Run(bg(), succeed)
		_, _, _, _, _ = b.Explain(), b.Latency(), b.LifetimeLatency(), b.Totals(), g.Len()
		b.Observe(func(*stat.Series, float64) bool { return true })
		b.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
		_ = b.Reconfigure(c)
		b.Force(breaker.Shadow, "")
		b.Release()
		callEverything(g, key, c)
	}
}

func TestCallbacksMayCallTheGroupAndTheBreaker(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			var inside atomic.Bool
			seen := 0
			requireReturns(t, func() {
				useCallbacks(func(callback string, g *breaker.Group[string], c breaker.Config) {
					// a result whose member is forgotten goes to the next one, so without end if
					// Trace forgets each of them
					if callback == active && seen < 3 && inside.CompareAndSwap(false, true) {
						seen++
						useEverything(g, c)
						inside.Store(false)
					}
				})
			})
			require.Positive(t, seen)
		})
	}
}

// While a callback runs, calls of its key and of others go on, and so do all methods.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			var began atomic.Bool
			groups, end, done := make(chan func(), 1), make(chan bool), make(chan bool)
			go func() {
				defer close(done)
				useCallbacks(func(callback string, g *breaker.Group[string], c breaker.Config) {
					if callback == active && began.CompareAndSwap(false, true) {
						groups <- func() { useEverything(g, c) }
						<-end
					}
				})
			}()
			requireReturns(t, func() { (<-groups)() })
			close(end)
			<-done
		})
	}
}

// Scenario A40.
// In other breakers callbacks are called under a lock or out of order, or can crash the process.
func TestCallbacksMayDoAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *breaker.Breaker
		var seen []breaker.State
		b = breaker.New("b", breaker.Config{Cooldown: breaker.Off, Probes: 1, FailureRun: breaker.Off, Recovery: breaker.Off, OnChange: func(c breaker.Change) {
			seen = append(seen, c.To)
			_, _, _, _ = b.State(), b.Counts(), b.Totals(), b.StatsNow()
			for range b.Observe {
			}
			switch len(seen) {
			case 1:
				_ = b.Check()
				_ = b.Run(bg(), succeed) // half-open and closed again, from within
			case 4:
				panic("callback")
			case 5:
				runtime.Goexit()
			}
		}})
		open2 := func() {
			for range 20 {
				_ = b.Run(bg(), fail)
			}
		}
		open2()
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, seen, "delivered in order, after the callback that caused them")

		open2() // panics in the callback: the caller sees nothing of it
		require.Len(t, seen, 4)
		require.Equal(t, int64(1), b.StatsNow().Dropped)

		var wg sync.WaitGroup
		// two changes; the callback of the first ends the goroutine
		wg.Go(func() { _ = b.Run(bg(), succeed) })
		wg.Wait()
		require.Equal(t, breaker.HalfOpen, seen[4])
		time.Sleep(10 * time.Second) // ProbeTimeout releases the slot of the probe
		require.NoError(t, b.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, breaker.Closed, seen[len(seen)-1])
	})
}

// A callback that blocks delays only the caller that runs it. The queue is bounded, dropped changes
// are counted, and queued changes are delivered however the callback ends.
func TestABlockedCallbackBlocksNoOtherCaller(t *testing.T) {
	for name, c := range map[string]struct {
		end     func()
		dropped int64
	}{
		"returns":            {func() {}, 0},
		"panics":             {func() { panic("callback") }, 1},
		"ends its goroutine": {runtime.Goexit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var seqs []uint64
				b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Cooldown: breaker.Off, Probes: 1, OnChange: func(change breaker.Change) {
					seqs = append(seqs, change.Seq())
					if change.Seq() == 1 {
						<-release
						c.end()
					}
				}})
				go func() { _ = b.Run(bg(), fail) }()
				synctest.Wait()
				for range 60 { // three changes each
					require.NoError(t, b.Run(bg(), succeed))
					require.ErrorIs(t, b.Run(bg(), fail), errDown)
				}
				close(release)
				synctest.Wait()
				require.Len(t, seqs, 1+64)
				for i, seq := range seqs {
					require.Equal(t, uint64(i+1), seq, "in order")
				}
				require.Equal(t, 60*3-64+c.dropped, b.StatsNow().Dropped)
			})
		})
	}
}

// In other breakers functions like Classify and Trip are called, and panic, under a lock.
func TestARuleThatPanicsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off, Trip: func(window.Counts) (string, bool) {
			if panics {
				panic("trip")
			}
			return "", false
		}})
		require.PanicsWithValue(t, "trip", func() { _ = b.Run(bg(), fail) })
		require.PanicsWithValue(t, "trip", func() { _, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { return 1, nil }) })
		p, err := b.Allow()
		require.NoError(t, err)
		require.PanicsWithValue(t, "trip", func() { p.Record(bg(), nil, breaker.Failure) })
		require.False(t, p.Record(bg(), nil, breaker.Failure))
		panics = false
		require.Equal(t, window.Counts{Successes: 1, Failures: 2, ConsecutiveFailures: 1}, b.Counts(), "the results stand")
		run(t, b, 17, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

// In another library a shared breaker holds the lock of its store for a whole call. SharedCounts is
// called outside all locks: if it blocks, only its caller waits.
func TestBlockedSharedCountsBlockNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		store := make(chan struct{})
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off, SharedCounts: func() window.Counts {
			if asked.Add(1) == 1 {
				<-store
			}
			return window.Counts{}
		}})
		go func() { _ = b.Run(bg(), succeed) }()
		synctest.Wait()
		run(t, b, 19, fail)
		require.Equal(t, breaker.Open, b.State(), "it even opens meanwhile, on its own evidence")
		require.Equal(t, int64(1), b.Totals().Successes, "the call's own result has been booked")
		close(store)
	})
}

// Scenarios A39 and A41.
func TestChangesAlternateWithTheirCounts(t *testing.T) {
	var mu sync.Mutex
	var told []breaker.Change
	b := breaker.New("b", breaker.Config{MinCalls: 3, Probes: 2, Cooldown: breaker.Off, Recovery: breaker.Off, OnChange: func(c breaker.Change) {
		mu.Lock()
		told = append(told, c)
		mu.Unlock()
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				_ = b.Run(bg(), map[bool]func(context.Context) error{true: fail, false: succeed}[i%3 > 0])
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, told)
	legal := map[breaker.State][]breaker.State{
		breaker.Closed: {breaker.Open}, breaker.Open: {breaker.HalfOpen}, breaker.HalfOpen: {breaker.Open, breaker.Closed},
	}
	from := breaker.Closed
	for i, c := range told {
		if i > 0 && c.Seq() != told[i-1].Seq()+1 { // some were dropped
			from = c.From
		}
		require.Equal(t, from, c.From)
		require.Contains(t, legal[c.From], c.To)
		if c.From == breaker.Closed {
			require.GreaterOrEqual(t, c.Counts.FailureRate(), 0.5)
			require.GreaterOrEqual(t, c.Counts.Calls(), int64(3))
		}
		from = c.To
	}
	require.Equal(t, b.LastSeq(), told[len(told)-1].Seq())
}
