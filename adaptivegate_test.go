package weir_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// adaptiveGates returns gates with an adaptive bound, made in all ways in which a gate can be made.
func adaptiveGates() map[string]*weir.Gate {
	c := weir.Config{Adaptive: true}
	tokens := weir.Config{Adaptive: true, Rate: limiter.PerSecond(1e6)}
	waits := weir.Config{Adaptive: true, MaxWait: 10 * time.Millisecond}
	return map[string]*weir.Gate{
		"weir.Config":             weir.New("g", c),
		"weir.Config, a rate":     weir.New("g", tokens),
		"weir.Config, a MaxWait":  weir.New("g", waits),
		"weir.Parts":              weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: inflight.New(inflight.Config{Adaptive: true})}),
		"a key":                   hosts(weir.GroupConfig{Gate: c}).Get("a"),
		"a key without room":      gateWithoutRoom(c),
		"a key, a rate":           hosts(weir.GroupConfig{Gate: tokens}).Get("a"),
		"weir.Parts, a remote":    weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1e6), InFlight: inflight.New(inflight.Config{Adaptive: true})}),
		"a breaker that is timed": weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{SlowCall: time.Minute}}),
	}
}

// limitOf returns the bound on calls in flight in the metrics of a gate or a group.
func limitOf(g stat.Source) int {
	values, _ := readMetrics(g)
	return int(values["weir.inflight.limit"])
}

// service has servers that take 20 ms for a call, and a queue.
type service struct {
	servers chan struct{} // a value per idle server
	taken   int           // by removeServers
}

func newService(servers int) *service {
	s := &service{servers: make(chan struct{}, servers)}
	for range servers {
		s.servers <- struct{}{}
	}
	return s
}

// call waits for a server and for the server's answer. It gives up when ctx is done.
func (s *service) call(ctx context.Context) error {
	select {
	case <-s.servers:
	case <-ctx.Done():
		return ctx.Err()
	}
	time.Sleep(20 * time.Millisecond)
	s.servers <- struct{}{}
	return nil
}

// removeServers removes servers, and addServers adds them again.
func (s *service) removeServers(servers int) {
	for range servers {
		<-s.servers
	}
	s.taken += servers
}

func (s *service) addServers() {
	for ; s.taken > 0; s.taken-- {
		s.servers <- struct{}{}
	}
}

// result counts calls by how they ended.
type result struct{ good, failed, refused atomic.Int64 }

// makeLoad makes 250 calls per second for the given time, each with a deadline of a second, and
// waits for all of them to end.
func (s *service) makeLoad(g *weir.Gate, random *rand.Rand, d time.Duration) *result {
	r := new(result)
	var wg sync.WaitGroup
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(4*time.Millisecond)))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			switch err := g.Run(ctx, s.call); {
			case err == nil:
				r.good.Add(1)
			case weir.RetryAfter(err) > 0: // refused
				r.refused.Add(1)
			default:
				r.failed.Add(1)
			}
		})
	}
	wg.Wait()
	return r
}

// A service that can answer 500 calls per second gets 250. While only two of its ten servers are
// left, it can answer 100. During that time the gate refuses the calls beyond that, so hardly any
// call fails. Before and after, the gate refuses nothing. With WEIR_SOAK=true it takes twice as
// long.
func TestAnAdaptiveGateFollowsTheCapacityOfItsService(t *testing.T) {
	seconds := time.Duration(testenv.Repeat(20, 10))
	for name := range adaptiveGates() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s, random := adaptiveGates()[name], newService(10), rand.New(rand.NewPCG(1, 2))
				well := s.makeLoad(g, random, seconds*time.Second)
				require.Zero(t, well.failed.Load())
				require.Zero(t, well.refused.Load())

				s.removeServers(8)
				bad := s.makeLoad(g, random, seconds*time.Second)
				require.Greater(t, bad.good.Load(), int64(90*seconds), "of 100 per second")
				require.Greater(t, bad.refused.Load(), int64(100*seconds), "of 150 per second")
				require.Less(t, bad.failed.Load(), int64(100), "of 5,000")
				require.Zero(t, g.Breaker().Totals().Refused)

				s.addServers()
				s.makeLoad(g, random, 5*time.Second)
				well = s.makeLoad(g, random, seconds*time.Second)
				require.Zero(t, well.failed.Load())
				require.Zero(t, well.refused.Load())
				require.GreaterOrEqual(t, limitOf(g), 50)
			})
		})
	}
}

// A healthy service gets as many calls at once as its callers make.
func TestAnAdaptiveGateRefusesNothingWithoutEvidence(t *testing.T) {
	const calls = 1000
	for name := range adaptiveGates() {
		synctest.Test(t, func(t *testing.T) {
			g, s := adaptiveGates()[name], newService(calls)
			for range 3 {
				var refused atomic.Int64
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						if g.Run(t.Context(), s.call) != nil {
							refused.Add(1)
						}
					})
				}
				synctest.Wait()
				require.Equal(t, calls, callsInFlight(g), name)
				wg.Wait()
				require.Zero(t, refused.Load(), name)
			}
		})
	}
}

// The time that a call waits for its slot is no part of its duration. If it were, calls that wait
// after a hang would seem slow, and the bound would stay at one call.
func TestAWaitForASlotDoesNotCountAsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Adaptive: true, MaxWait: time.Minute, Breaker: breaker.Config{Initial: breaker.ForcedClosed}})
		makeUsualCalls(t, g)
		for range 100 {
			_ = g.Run(t.Context(), slowCall(errDown))
		}
		require.Equal(t, 1, limitOf(g))
		began := time.Now()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if g.Run(t.Context(), newService(1).call) != nil {
					t.Error("refused")
				}
			})
		}
		wg.Wait()
		require.Less(t, time.Since(began), time.Second, "one after the other they would take 4 s")
	})
}

// slowCall makes a call that lasts a second, fifty times as long as usual.
func slowCall(err error) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(time.Second)
		return err
	}
}

// In every way to make a call, the bound gets the duration of the call, and the same outcome as the
// breaker.
func TestTheOutcomesOfCallsReachAnAdaptiveBound(t *testing.T) {
	const refusing, indifferent = 1, 50
	for ending, c := range map[string]struct {
		call func(context.Context) error
		want int
	}{
		"a slow success":   {slowCall(nil), refusing},
		"a late failure":   {slowCall(errDown), refusing},
		"a panic":          {func(ctx context.Context) error { _ = slowCall(nil)(ctx); panic("boom") }, refusing},
		"Goexit":           {func(ctx context.Context) error { _ = slowCall(nil)(ctx); runtime.Goexit(); return nil }, refusing},
		"an early failure": {fail, indifferent},
		"an early success": {succeed, indifferent},
		"a late refusal":   {slowCall(weir.ErrRefused), indifferent},
	} {
		for form, call := range callForms {
			want := c.want
			if form == "Permit.Record, not made" {
				want = indifferent // this form always records the outcome Ignored
			}
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{Initial: breaker.ForcedClosed}})
				makeUsualCalls(t, g)
				for range 100 {
					done := make(chan struct{})
					go func() { // Goexit ends it
						defer close(done)
						defer func() { _ = recover() }()
						_ = call(t.Context(), g, c.call)
					}()
					<-done
				}
				require.Equal(t, want, limitOf(g), "%s, %s", ending, form)
			})
		}
	}
}

// makeUsualCalls makes calls of 20 ms, so that the gate learns how long calls take.
func makeUsualCalls(t *testing.T, g *weir.Gate) {
	for range 100 {
		require.NoError(t, g.Run(t.Context(), func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }))
	}
}

// The time that a call waits for its token says nothing about the service.
func TestAWaitForATokenDoesNotCountAsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Adaptive: true, Rate: limiter.PerSecond(1), Burst: 100, MaxWait: time.Minute})
		makeUsualCalls(t, g)
		began := time.Now()
		for range 100 {
			require.NoError(t, g.Run(t.Context(), succeed))
		}
		require.Greater(t, time.Since(began), 90*time.Second)
		require.Equal(t, 50, limitOf(g))
	})
}

// The bound of one key follows that key alone, and the metric of the group shows the lowest one.
func TestEachKeyHasItsOwnAdaptiveBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Adaptive: true}})
		for _, key := range []string{"slow", "quick"} {
			makeUsualCalls(t, g.Get(key))
		}
		for range 100 {
			_ = g.Get("slow").Run(t.Context(), slowCall(nil))
			_ = g.Get("quick").Run(t.Context(), succeed)
		}
		require.Equal(t, 1, limitOf(g.Get("slow")))
		require.Equal(t, 50, limitOf(g.Get("quick")))
		require.Equal(t, 1, limitOf(g))

		require.True(t, g.Forget("slow"))
		require.Equal(t, 50, limitOf(g.Get("slow")), "it learns again from the start")
		require.Equal(t, 50, limitOf(g))

		require.NoError(t, g.Reconfigure(weir.Config{Adaptive: true, MaxConcurrent: 3}))
		require.Equal(t, 3, limitOf(g.Get("slow")))
		require.Equal(t, 3, limitOf(g.Get("new")))
		require.NoError(t, g.Reconfigure(weir.Config{Adaptive: true}))
		require.Equal(t, 50, limitOf(g), "0 stands for the highest limit of package inflight")
	})
}

// makeSteadyLoad makes 150 calls per second for a time, and returns how many were refused.
func makeSteadyLoad(g *weir.Gate, random *rand.Rand, d time.Duration, call func(ctx context.Context, n int) error) (refused, failed int64) {
	var r result
	var wg sync.WaitGroup
	for end, n := time.Now().Add(d), 0; time.Now().Before(end); n++ {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second/150)))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			switch err := g.Run(ctx, func(ctx context.Context) error { return call(ctx, n) }); {
			case errors.Is(err, weir.ErrRefused):
				r.refused.Add(1)
			case err != nil:
				r.failed.Add(1)
			}
		})
	}
	wg.Wait()
	return r.refused.Load(), r.failed.Load()
}

// One host of three hangs, or is so slow that half of its calls are late. The other hosts are well,
// so nothing is congested.
func TestAnAdaptiveGateRefusesNothingForOneBadHost(t *testing.T) {
	for name, bad := range map[string]func(context.Context) error{
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"slow":  newService(10).slowCall,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", weir.Config{Adaptive: true})
			good, down := newService(20), false
			call := func(ctx context.Context, n int) error {
				if down && n%3 == 0 {
					return bad(ctx)
				}
				return good.call(ctx)
			}
			random := rand.New(rand.NewPCG(1, 2))
			makeSteadyLoad(g, random, 10*time.Second, call)
			down = true
			refused, failed := makeSteadyLoad(g, random, time.Minute, call)
			require.Zero(t, refused, name)
			require.Greater(t, failed, int64(1000), "%s: of 9,000", name)
			require.Empty(t, g.Explain())
		})
	}
}

// slowCall lasts 100 to 1,900 ms, or until ctx is done.
func (*service) slowCall(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(100+rand.IntN(1800)) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errQueueFull = errors.New("queue is full")

// A service of ten servers loses four, and can hold forty more calls. The classifier says that the
// errors of a full queue are the service's word for an overload.
func TestAnAdaptiveGateLearnsFromTheWordOfTheService(t *testing.T) {
	for _, said := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", weir.Config{Adaptive: true, Breaker: breaker.Config{Classify: func(err error) breaker.Outcome {
				if said && errors.Is(err, errQueueFull) {
					return breaker.Overloaded
				}
				return breaker.DefaultClassify(err)
			}}})
			s := newService(10)
			var inside atomic.Int64
			call := func(ctx context.Context, _ int) error {
				defer inside.Add(-1)
				if inside.Add(1) > 46 {
					return errQueueFull
				}
				select {
				case <-s.servers:
				case <-ctx.Done():
					return ctx.Err()
				}
				time.Sleep(50 * time.Millisecond)
				s.servers <- struct{}{}
				return nil
			}
			random := rand.New(rand.NewPCG(1, 2))
			makeSteadyLoad(g, random, 20*time.Second, call)
			s.removeServers(4) // so it takes 120 calls per second, of 150
			makeSteadyLoad(g, random, 5*time.Second, call)
			_, failed := makeSteadyLoad(g, random, 30*time.Second, call)
			if !said {
				require.Greater(t, failed, int64(600), "of 900 that are too many")
				return
			}
			require.Less(t, failed, int64(200), "of 900 that are too many")
			require.Contains(t, g.Explain(), "the service says that it is overloaded")
			values, _ := readMetrics(g)
			require.Greater(t, values["weir.inflight.bounding.time"], 10.0)
			s.addServers()
			makeSteadyLoad(g, random, 5*time.Second, call)
			refused, _ := makeSteadyLoad(g, random, 10*time.Second, call)
			require.Zero(t, refused)
			require.Empty(t, g.Explain())
		})
	}
}
