package guards

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/logging"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func sentinelRows() []sim.Maker {
	errorRatio := circuitbreaker.Rule{
		Strategy: circuitbreaker.ErrorRatio, Threshold: 0.5,
		RetryTimeoutMs: 3000, MinRequestAmount: 10, StatIntervalMs: 10_000,
	}
	return []sim.Maker{
		sentinel("sentinel", "it has no defaults; the error rule of its documentation: half of at least ten calls "+
			"in 10 s; open for 3 s; one probe",
			func(sim.Client) []circuitbreaker.Rule { return []circuitbreaker.Rule{errorRatio} }),
		sentinel("sentinel, tuned", "the documented rules for errors and for slow calls together; a window of ten "+
			"buckets in place of one; 20 calls at least; three probes; a call is slow after half of the timeout",
			func(c sim.Client) []circuitbreaker.Rule {
				failed := errorRatio
				failed.MinRequestAmount, failed.StatSlidingWindowBucketCount, failed.ProbeNum = 20, 10, 3
				slow := failed
				slow.Strategy = circuitbreaker.SlowRequestRatio
				slow.MaxAllowedRtMs = uint64(max(c.Timeout/2, time.Millisecond) / time.Millisecond)
				return []circuitbreaker.Rule{failed, slow}
			}),
	}
}

func sentinel(name, about string, rules func(sim.Client) []circuitbreaker.Rule) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Peer: true,
		New: func(s sim.Setting) sim.Guard {
			listenToSentinel()
			resource := fmt.Sprintf("resource %d", sentinelResources.Add(1))
			var own []*circuitbreaker.Rule
			for _, r := range rules(clientOf(s)) {
				r.Resource = resource
				own = append(own, &r)
			}
			if _, err := circuitbreaker.LoadRulesOfResource(resource, own); err != nil {
				panic(err)
			}
			g := &sentinelGuard{resource: resource}
			g.refusals = []error{errSentinel}
			g.call = func(ctx context.Context, f func(context.Context) error) error {
				return runSentinel(resource, func() error { return f(ctx) })
			}
			sentinelOpenings.Store(resource, &g.openings)
			return g
		},
	}
}

// sentinelGuard removes the rules of its resource.
type sentinelGuard struct {
	guard
	resource string
}

// Close removes the rules, which sentinel keeps for all resources of the program.
func (g *sentinelGuard) Close() {
	sentinelOpenings.Delete(g.resource)
	if err := circuitbreaker.ClearRulesOfResource(g.resource); err != nil {
		panic(err)
	}
}

// sentinelResources makes the names of resources unique, because sentinel keeps the counts of a
// name.
var sentinelResources atomic.Int64

// errSentinel is a refusal. A BlockError has no errors.Is of its own.
var errSentinel error = new(base.BlockError)

func runSentinel(resource string, f func() error) error {
	entry, blocked := api.Entry(resource)
	if blocked != nil {
		return errSentinel
	}
	defer entry.Exit()
	err := f()
	if err != nil {
		api.TraceError(entry, err)
	}
	return err
}

// sentinelOpenings counts openings by the name of the resource, because listeners are called for
// all resources.
var sentinelOpenings sync.Map

var listenToSentinel = sync.OnceFunc(func() {
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel)
	circuitbreaker.RegisterStateChangeListeners(sentinelListener{})
})

type sentinelListener struct{}

func (sentinelListener) OnTransformToOpen(from circuitbreaker.State, rule circuitbreaker.Rule, _ any) {
	if from == circuitbreaker.HalfOpen {
		return
	}
	if count, ok := sentinelOpenings.Load(rule.Resource); ok {
		count.(*atomic.Int64).Add(1)
	}
}
func (sentinelListener) OnTransformToClosed(circuitbreaker.State, circuitbreaker.Rule)   {}
func (sentinelListener) OnTransformToHalfOpen(circuitbreaker.State, circuitbreaker.Rule) {}
