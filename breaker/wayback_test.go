package breaker_test

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
)

// shape is how a healthy service answers: how long a call takes, and whether it fails at once.
type shape struct {
	took    func(r *rand.Rand) time.Duration
	longest time.Duration
	fails   float64 // the share of calls that fail after a millisecond
}

func shapes() map[string]shape {
	in := func(unit time.Duration, longest time.Duration, draw func(r *rand.Rand) float64) shape {
		return shape{longest: longest, took: func(r *rand.Rand) time.Duration {
			return min(time.Duration(draw(r)*float64(unit)), longest)
		}}
	}
	constant := func(*rand.Rand) float64 { return 1 }
	exponential := (*rand.Rand).ExpFloat64
	lognormal := func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }
	bimodal := func(r *rand.Rand) float64 {
		if r.Float64() < 0.8 {
			return 1
		}
		return 400
	}
	fastErrors := in(time.Second, 5*time.Second, lognormal)
	fastErrors.fails = 0.1
	return map[string]shape{
		"constant":                          in(20*time.Millisecond, 20*time.Millisecond, constant),
		"exponential":                       in(50*time.Millisecond, time.Second, exponential),
		"lognormal":                         in(50*time.Millisecond, 2*time.Second, lognormal),
		"bimodal":                           in(5*time.Millisecond, 2*time.Second, bimodal),
		"longer than ProbeTimeout":          in(15*time.Second, 15*time.Second, constant),
		"long and exponential":              in(10*time.Second, time.Minute, exponential),
		"fast errors beside slow successes": fastErrors,
	}
}

// ending is a call that ends at a time, or never.
type ending struct {
	at     time.Time
	ctx    context.Context
	err    error
	permit *breaker.Permit
}

type endings []ending

func (h endings) Len() int           { return len(h) }
func (h endings) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h endings) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endings) Push(x any)        { *h = append(*h, x.(ending)) }
func (h *endings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// deadline is a context that is done at a time.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }
func (d deadline) Err() error {
	if time.Now().Before(d.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// wayBack makes calls of one key of a group, whose other keys evict it if they can.
type wayBack struct {
	*rand.Rand
	group  *breaker.Group[int]
	config breaker.Config
	flight endings
	// of the calls made now
	takes   func() (time.Duration, error)
	patient func() time.Duration
}

const wayBackKey = -1

// sleep ends the calls that are due in the given time.
func (w *wayBack) sleep(d time.Duration) {
	until := time.Now().Add(d)
	for len(w.flight) > 0 && !w.flight[0].at.After(until) {
		e := heap.Pop(&w.flight).(ending)
		time.Sleep(time.Until(e.at))
		e.permit.Done(e.ctx, e.err)
	}
	time.Sleep(time.Until(until))
}

// call makes a call and reports whether it passed.
func (w *wayBack) call() bool {
	permit, err := w.group.Get(wayBackKey).Allow()
	if err != nil {
		return false
	}
	took, err := w.takes()
	ctx := deadline{context.Background(), time.Now().Add(w.patient())}
	e := ending{time.Now().Add(took), ctx, err, &permit}
	if e.at.After(ctx.at) {
		e.at, e.err = ctx.at, context.DeadlineExceeded
	}
	if w.IntN(500) > 0 { // otherwise the permit is forgotten
		heap.Push(&w.flight, e)
	}
	return true
}

// trouble makes random steps: the service and its callers change, and people act on the breaker.
func (w *wayBack) trouble(steps int, s shape) {
	for range steps {
		switch w.IntN(300) {
		case 0, 1, 2:
			w.changeService(s)
		case 3:
			limit := time.Duration(1+w.IntN(2000)) * time.Millisecond
			w.patient = func() time.Duration {
				if w.IntN(3) > 0 {
					return limit
				}
				return time.Hour
			}
		case 4:
			w.group.Get(wayBackKey).Force([]breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow}[w.IntN(4)], "")
		case 5, 6:
			w.group.Get(wayBackKey).Release()
		case 7:
			c := w.config
			c.Window, c.MinCalls, c.LastCalls = time.Duration(1+w.IntN(30))*time.Second, 1+w.IntN(30), 0
			_ = w.group.ReconfigureAt(time.Now(), c)
		case 8:
			w.group.Get(wayBackKey).OpenFor(time.Second)
		case 9:
			w.group.Forget(wayBackKey)
		case 10:
			w.sleep(time.Duration(w.IntN(60)) * time.Second)
		case 11, 12:
			w.group.Get(w.IntN(10))
		}
		w.call()
		w.sleep(time.Duration(w.ExpFloat64() * float64(50*time.Millisecond)))
	}
}

func (w *wayBack) changeService(s shape) {
	slow := time.Duration(1 + w.IntN(20))
	bad := w.Float64()
	w.takes = []func() (time.Duration, error){
		func() (time.Duration, error) { return s.took(w.Rand), nil },
		func() (time.Duration, error) { return time.Millisecond, errDown },
		func() (time.Duration, error) { return time.Hour, nil },
		func() (time.Duration, error) { return slow * s.took(w.Rand), nil },
		func() (time.Duration, error) {
			if w.Float64() < bad {
				return s.took(w.Rand), errDown
			}
			return s.took(w.Rand), nil
		},
	}[w.IntN(5)]
}

// wayBackTime is the time that docs/breaker.md promises.
func wayBackTime(c breaker.Config, longest, gap time.Duration) time.Duration {
	d := modelDefaults(c)
	window := max(d.Window, time.Duration(d.LastCalls)*gap)
	return window + d.Cooldown + d.Recovery + d.ProbeTimeout + 5*longest + 40*gap + 3*time.Second
}

// Whatever has happened before, a breaker lets all calls of a healthy service through again within
// the time that docs/breaker.md promises. With WEIR_SOAK=true there is more trouble, a service
// whose calls take long is called as often as the others, and the calls are made for longer.
func TestABreakerFindsItsWayBack(t *testing.T) {
	steps := testenv.Repeat(100_000, 400)
	configs := map[string]breaker.Config{
		"default":          {},
		"short":            {Window: time.Second, Cooldown: 100 * time.Millisecond, Recovery: time.Second},
		"long":             {Window: time.Minute, Cooldown: 5 * time.Second, Recovery: time.Minute},
		"last calls":       {LastCalls: 50},
		"without recovery": {Recovery: breaker.Off},
	}
	for name, s := range shapes() {
		for kind, c := range configs {
			often := 5 * time.Millisecond
			if s.longest > 2*time.Second && !testenv.Soak() {
				often = 50 * time.Millisecond
			}
			for _, gap := range []time.Duration{often, 200 * time.Millisecond, 5 * time.Second} {
				t.Run(fmt.Sprintf("%s, %s, a call per %v", name, kind, gap), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { findWayBack(t, s, c, gap, steps) })
				})
			}
		}
	}
}

func findWayBack(t *testing.T, s shape, c breaker.Config, gap time.Duration, steps int) {
	w := &wayBack{Rand: rand.New(rand.NewPCG(uint64(gap), 3)), config: c, patient: func() time.Duration { return time.Hour }}
	w.group = breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: c, MaxKeys: 3, MaxSeries: breaker.Off})
	w.changeService(s)
	w.trouble(steps, s)

	w.group.Get(wayBackKey).Release()
	require.NoError(t, w.group.ReconfigureAt(time.Now(), c))
	w.patient = func() time.Duration { return time.Hour }
	w.takes = func() (time.Duration, error) {
		if w.Float64() < s.fails {
			return time.Millisecond, errDown
		}
		return s.took(w.Rand), nil
	}
	healthy, limit := time.Now(), wayBackTime(c, s.longest, gap)
	refusedAt := healthy
	for time.Since(healthy) < limit+limit/time.Duration(testenv.Repeat(1, 8)) {
		w.sleep(time.Duration(w.ExpFloat64() * float64(gap)))
		if !w.call() {
			refusedAt = time.Now()
		}
	}
	require.LessOrEqual(t, refusedAt.Sub(healthy), limit, "%s: %s", w.group.Get(wayBackKey).State(), w.group.Get(wayBackKey).Explain())
}
