package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
)

// limiterOnly is a limiter that is not a WaitLimiter and cannot be held.
type limiterOnly struct{ limiter.Limiter }

// gateWithoutRoom returns the gate of a key in a group without room for it.
func gateWithoutRoom(c weir.Config) *weir.Gate {
	g := hosts(weir.GroupConfig{MaxKeys: 2, Gate: c})
	for i := range 10 {
		_ = g.Get(fmt.Sprint("busy", i)).Run(bg(), fail)
	}
	return g.Get("late")
}

// everyGate returns a gate of each kind. None refuses a call unless it is held.
func everyGate() map[string]*weir.Gate {
	rate := weir.Config{Rate: limiter.PerSecond(1000)}
	in := func(s breaker.State) weir.Config { return weir.Config{Breaker: breaker.Config{Initial: s}} }
	gates := map[string]*weir.Gate{
		"the zero config":               weir.New("g", weir.Config{}),
		"a rate":                        weir.New("g", rate),
		"an unlimited rate":             weir.New("g", weir.Config{Rate: limiter.Unlimited()}),
		"latency":                       weir.New("g", weir.Config{Breaker: breaker.Config{Latency: true}}),
		"a shadow breaker":              weir.New("g", in(breaker.Shadow)),
		"a breaker that is forced shut": weir.New("g", in(breaker.ForcedClosed)),
		"a breaker that is disabled":    weir.New("g", in(breaker.Disabled)),
		"joined, no limiter":            weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{})}),
		"a key":                         hosts(weir.GroupConfig{}).Get("a"),
		"a key with a rate":             hosts(weir.GroupConfig{Gate: rate}).Get("a"),
		"a key without room":            gateWithoutRoom(weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}),
		"a key without room, a rate":    gateWithoutRoom(rate),
		"a rate, and time to wait":      weir.New("g", weir.Config{Rate: limiter.PerSecond(1000), MaxWait: time.Second}),
		"slots":                         weir.New("g", weir.Config{MaxConcurrent: 1}),
		"slots, and time to wait":       weir.New("g", weir.Config{MaxConcurrent: 1, MaxWait: time.Second}),
		"slots and a rate":              weir.New("g", weir.Config{MaxConcurrent: 1, Rate: limiter.PerSecond(1000)}),
		"slots, timed calls":            weir.New("g", weir.Config{MaxConcurrent: 1, Breaker: breaker.Config{SlowCall: time.Minute}}),
		"slots, calls that may hang":    weir.New("g", weir.Config{MaxConcurrent: 1, Breaker: breaker.Config{SlowCall: time.Minute, HungCalls: true}}),
		"a key with slots":              hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1}}).Get("a"),
		"a key with slots and a rate":   hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1, Rate: limiter.PerSecond(1000)}}).Get("a"),
		"a key without room, slots":     gateWithoutRoom(weir.Config{MaxConcurrent: 1}),
	}
	for name, c := range map[string]weir.Config{
		"slots":                           {},
		"slots, and time to wait":         {MaxWait: time.Second},
		"slots and a rate":                {Rate: limiter.PerSecond(1000)},
		"slots, a rate, and time to wait": {Rate: limiter.PerSecond(1000), MaxWait: time.Second},
		"slots, timed calls":              {Breaker: breaker.Config{SlowCall: time.Minute}},
		"slots, calls that may hang":      {Breaker: breaker.Config{SlowCall: time.Minute, HungCalls: true}},
	} {
		c.Adaptive, c.MaxConcurrent = true, 1
		gates["adaptive "+name] = weir.New("g", c)
		gates["a key with adaptive "+name] = hosts(weir.GroupConfig{Gate: c}).Get("a")
		gates["a key without room, adaptive "+name] = gateWithoutRoom(c)
		c.RefuseHopeless = true
		gates["hopeless calls refused, adaptive "+name] = weir.New("g", c)
		gates["a key, hopeless calls refused, adaptive "+name] = hosts(weir.GroupConfig{Gate: c}).Get("a")
		c.Adaptive = false
		gates["hopeless calls refused, "+name] = weir.New("g", c)
	}
	for name, l := range map[string]limiter.Limiter{
		"a bucket":               limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)}),
		"a named bucket":         limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000), Name: "n"}),
		"what cannot be held":    limiterOnly{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
		"a window":               limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 1000, Window: time.Second}),
		"a limiter in the shade": limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n", Shadow: true}),
	} {
		gates["joined, "+name] = weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: l})
	}
	for name, p := range map[string]weir.Parts{
		"slots":                          {},
		"slots and a bucket":             {Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
		"slots and a remote":             {Remote: newRemote(1000)},
		"slots, a remote, time to wait":  {Remote: newRemote(1000), MaxWait: time.Second},
		"slots and a throttle":           {Throttle: throttle.New("t", throttle.Config{K: 1e9})},
		"slots, a throttle and a bucket": {Throttle: throttle.New("t", throttle.Config{K: 1e9}), Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
	} {
		p.Breaker, p.InFlight = breaker.New("b", breaker.Config{}), inflight.New(inflight.Config{Limit: 1})
		gates["joined, "+name] = weir.Join("g", p)
		p.RefuseHopeless, p.InFlight = true, inflight.New(inflight.Config{Limit: 1})
		gates["joined, hopeless calls refused, "+name] = weir.Join("g", p)
		p.RefuseHopeless, p.InFlight = false, inflight.New(inflight.Config{Limit: 1, Name: "in flight"})
		gates["joined, named "+name] = weir.Join("g", p)
		p.InFlight = inflight.New(inflight.Config{Limit: 1, Adaptive: true})
		gates["joined, adaptive "+name] = weir.Join("g", p)
		p.InFlight = inflight.New(inflight.Config{Limit: 1, Adaptive: true, Name: "in flight"})
		gates["joined, named adaptive "+name] = weir.Join("g", p)
	}
	gates["joined, a remote"] = weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1000)})
	gates["joined, a remote and a bucket, time to wait"] = weir.Join("g", weir.Parts{
		Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1000), MaxWait: time.Second,
		Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)}),
	})
	return gates
}

// verbs are the functions that make a call through a gate.
var verbs = map[string]func(ctx context.Context, g *weir.Gate, call func()) error{
	"Run": func(ctx context.Context, g *weir.Gate, call func()) error {
		return g.Run(ctx, func(context.Context) error { call(); return nil })
	},
	"Do": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.Do(ctx, g, func(context.Context) (int, error) { call(); return 0, nil })
		return err
	},
	"DoResult": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.DoResult(ctx, g, func(context.Context) (int, error) { call(); return 0, nil },
			func(int, error) breaker.Outcome { return breaker.Success })
		return err
	},
	"DoOr": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.DoOr(ctx, g, func(context.Context) (int, error) { call(); return 0, nil },
			func(_ context.Context, err error) (int, error) { return 0, err })
		return err
	},
	"Allow": func(ctx context.Context, g *weir.Gate, call func()) error {
		permit, err := g.Allow(ctx)
		if err == nil {
			call()
			permit.Record(breaker.Success)
		}
		return err
	},
}
