package fleet_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// settledCall is a call of the reference model: what it has used counts from its beginning.
type settledCall struct {
	id             string
	began, ends    time.Duration
	estimate, used int
	lost           bool // its process ends without Settle
}

// settledCalls is a heap of calls in flight: the first to end comes first.
type settledCalls []*settledCall

func (s settledCalls) Len() int           { return len(s) }
func (s settledCalls) Less(i, j int) bool { return s[i].ends < s[j].ends }
func (s settledCalls) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *settledCalls) Push(c any)        { *s = append(*s, c.(*settledCall)) }
func (s *settledCalls) Pop() any {
	last := len(*s) - 1
	c := (*s)[last]
	*s = (*s)[:last]
	return c
}

// settleRun makes random calls at given times.
type settleRun struct {
	*testing.T
	random   *rand.Rand
	overruns bool // calls may use more than they have reserved
	limiter  *fleet.Limiter
	now      time.Duration
	behind   time.Duration // by how much the clock of Redis was set back
	inFlight settledCalls
	calls    []*settledCall // since Redis has lost its data, by their beginning
	old      []*settledCall // those before
}

func (r *settleRun) at() time.Time { return testStart.Add(r.now - r.behind) }

// begin makes a call if the limits allow it.
func (r *settleRun) begin(id int) {
	c := &settledCall{id: strconv.Itoa(id), began: r.now, estimate: 1 + r.random.IntN(10), used: r.random.IntN(15)}
	if r.random.IntN(10) == 0 {
		c.used = r.random.IntN(100)
	}
	if c.lost = r.random.IntN(10) == 0; c.lost || !r.overruns {
		c.used = r.random.IntN(c.estimate + 1)
	}
	c.ends = r.now + time.Duration(r.random.IntN(1000)+1)*ms
	if !r.overruns && r.random.IntN(2) == 0 { // more comes back if it comes soon
		c.ends = r.now + time.Duration(r.random.IntN(20)+1)*ms
	}
	requireSoon(r.T, func() bool { // Redis may have been started again
		answer, err := r.limiter.TakeAt(r.Context(), r.at(), "key", c.estimate)
		if err == nil && answer.OK {
			r.calls = append(r.calls, c)
			heap.Push(&r.inFlight, c)
		}
		return err == nil
	})
}

// end settles a call once or several times.
func (r *settleRun) end(c *settledCall) {
	if c.lost || c.used == c.estimate {
		return
	}
	for range 1 + r.random.IntN(3) {
		requireSoon(r.T, func() bool {
			return r.limiter.SettleAt(r.Context(), r.at(), r.now-c.began, "key", c.id, c.used-c.estimate) == nil
		})
	}
}

func (r *settleRun) run(calls int, fault func()) {
	for id := range calls {
		next := r.now + time.Duration(r.random.ExpFloat64()*float64(r.random.IntN(8))*float64(50*ms)).Truncate(us)
		if r.random.IntN(10) == 0 { // the limits become full
			next += time.Duration(r.random.IntN(1000)) * ms
		}
		for len(r.inFlight) > 0 && r.inFlight[0].ends <= next {
			c := heap.Pop(&r.inFlight).(*settledCall)
			r.now = c.ends.Truncate(us) + us
			r.end(c)
		}
		r.now = max(next, r.now)
		switch r.random.IntN(60) {
		case 0:
			r.behind += time.Duration(r.random.IntN(2000)) * ms
		case 1:
			fault()
		}
		r.begin(id)
	}
}

// check compares what was used in any span between the beginnings of two calls with the bound:
// what the limits allow in it, and what the calls that were in flight at its end have used beyond
// their reservations. If Redis has lost its data, the calls from before may give back what they
// have reserved.
func (r *settleRun) check(bound func(from, to time.Duration) float64) {
	for i, first := range r.calls {
		used := 0
		for j := i; j < len(r.calls); j++ {
			last := r.calls[j]
			used += last.used
			most := bound(first.began, last.began)
			for _, c := range r.calls[i : j+1] {
				if c.ends >= last.began {
					most += float64(max(c.used-c.estimate, 0))
				}
			}
			for _, c := range r.old {
				if c.ends >= r.calls[0].began && c.ends <= last.began && !c.lost {
					most += float64(max(c.estimate-c.used, 0))
				}
			}
			require.LessOrEqual(r, float64(used), most+1e-6, "from %+v to %+v", first, last)
		}
	}
}

const (
	modelBurst    = 20
	modelInterval = 50 * ms
	modelWindow   = modelBurst * modelInterval
)

func bucketBound(from, to time.Duration) float64 {
	return modelBurst + float64(to-from+2*us)/float64(modelInterval)
}

func fixedBound(from, to time.Duration) float64 {
	return modelBurst * float64((to-from)/modelWindow+2) // the windows that the span touches
}

// slidingBound bounds spans of one window. A debt counts for one window and is not paid, so there
// is no such bound for longer spans.
func slidingBound(from, to time.Duration) float64 {
	if to-from >= modelWindow {
		return math.Inf(1)
	}
	return modelBurst
}

var modelLimits = map[string]struct {
	limits []fleet.Limit
	bound  func(from, to time.Duration) float64
}{
	"bucket":          {[]fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(1, modelInterval), Burst: modelBurst}}, bucketBound},
	"bucket of parts": {[]fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(1, modelInterval+1), Burst: modelBurst}}, bucketBound},
	"throttle":        {[]fleet.Limit{rediscell.Limit(modelBurst-1, int(60*time.Second/modelInterval), time.Minute)}, bucketBound},
	"fixed":           {[]fleet.Limit{fleet.FixedWindow{Limit: modelBurst, Window: modelWindow}}, fixedBound},
	"sliding":         {[]fleet.Limit{fleet.SlidingWindow{Limit: modelBurst, Window: modelWindow}}, slidingBound},
	"log":             {[]fleet.Limit{fleet.SlidingLog{Limit: modelBurst, Window: modelWindow}}, slidingBound},
	"several": {[]fleet.Limit{
		fleet.SlidingLog{Limit: modelBurst, Window: modelWindow},
		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.Per(1, modelInterval), Burst: modelBurst}},
		fleet.FixedWindow{Limit: 10 * modelBurst, Window: modelWindow},
	}, func(from, to time.Duration) float64 { return min(bucketBound(from, to), slidingBound(from, to)) }},
}

// In any span, what is used is at most what the limits allow, and the overruns of what was in
// flight. Calls are refused, cost more or less than they have reserved, are never settled or
// settled several times, Redis is started again, and its clock goes back. If Redis loses its data,
// the bound begins anew. A debt that sliding windows and logs count for one window
// keeps the bound for spans of one window.
func TestWhatIsUsedInAnySpanIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range modelLimits {
		for faultName, fault := range map[string]func(*redistest.Server, *settleRun){
			"restarts":                     func(s *redistest.Server, _ *settleRun) { s.Restart() },
			"FLUSHALL":                     func(s *redistest.Server, r *settleRun) { s.Do("FLUSHALL"); r.forget(c.bound) },
			"restarts without persistence": func(s *redistest.Server, r *settleRun) { s.Restart(); r.forget(c.bound) },
		} {
			t.Run(name+", "+faultName, func(t *testing.T) {
				t.Parallel()
				s := redistest.Options{AppendOnly: faultName == "restarts"}.Start(t)
				l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
				for seed := range uint64(testenv.Repeat(20, 4)) {
					r := &settleRun{
						T: t, random: rand.New(rand.NewPCG(seed, 4)), overruns: seed%2 == 0,
						limiter: newLimiters(l, "model "+strconv.FormatUint(seed, 10), fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off}, c.limits...),
					}
					r.run(200, func() { fault(s, r) })
					require.NotEmpty(t, r.calls)
					r.check(c.bound)
				}
			})
		}
	}
}

// forget checks the bound, and begins it anew.
func (r *settleRun) forget(bound func(from, to time.Duration) float64) {
	r.check(bound)
	r.old, r.calls = append(r.old, r.calls...), nil
}
