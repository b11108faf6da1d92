package inflight_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
)

const ms = time.Millisecond

// callers makes callers wait, one after the other, for the only slot, which is taken.
type callers struct {
	t       *testing.T
	limiter *inflight.Limiter
	next    chan struct{} // the caller with the slot waits for it
	all     sync.WaitGroup
	mu      sync.Mutex
	log     []string // the callers that got the slot, or left with an error
}

func newCallers(t *testing.T, c inflight.Config) *callers {
	c.Limit = 1
	l := &callers{t: t, limiter: inflight.New(c), next: make(chan struct{})}
	l.startCaller("owner", inflight.Caller{})
	l.log = nil
	return l
}

// startCaller starts a caller.
func (l *callers) startCaller(who string, c inflight.Caller) {
	l.all.Go(func() {
		slot, err := l.limiter.Acquire(inflight.WithCaller(l.t.Context(), c))
		if err != nil {
			require.ErrorIs(l.t, err, inflight.ErrFull)
			require.ErrorIs(l.t, err, sentinel.ErrRefused)
			who += " leaves"
		}
		l.mu.Lock()
		l.log = append(l.log, who)
		l.mu.Unlock()
		if err == nil {
			<-l.next
			slot.Done(l.t.Context(), nil)
		}
	})
	synctest.Wait()
}

// passSlot passes the slot on.
func (l *callers) passSlot() {
	l.next <- struct{}{}
	synctest.Wait()
}

// serveAll serves every caller, and returns their results in order.
func (l *callers) serveAll() []string {
	for l.limiter.InFlight() > 0 {
		l.passSlot()
	}
	l.all.Wait()
	return l.log
}

func TestCallersOfHigherPriorityWaitLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newCallers(t, inflight.Config{})
		for _, p := range []inflight.Priority{inflight.Background, inflight.Low, inflight.Normal, inflight.Critical} {
			for range 3 {
				l.startCaller(p.String(), inflight.Caller{Priority: p})
			}
		}
		got := l.serveAll()
		for i, name := range []string{"critical", "normal", "low", "background"} {
			require.Contains(t, got[:4], name, "each priority gets a share at once: %v", got)
			require.Less(t, slices.Index(got, name), 4)
			if i > 0 {
				require.Equal(t, "critical", got[4])
			}
		}
	})
}

// "If the queue is full, retries leave it before the other callers of their priority, but after all
// callers of a lower priority".
func TestAFullQueueRefusesTheLowestPriority(t *testing.T) {
	type caller = inflight.Caller
	low, retry := caller{Priority: inflight.Low}, caller{Priority: inflight.Low, Retry: true}
	retryOf := func(tenant string) caller { return caller{Tenant: tenant, Retry: true} }
	for name, c := range map[string]struct {
		first, second, last caller
		want                string
	}{
		"the last of equals":                      {low, low, low, "last leaves"},
		"a lower priority":                        {low, caller{}, caller{}, "first leaves"},
		"the last, if it matters least":           {caller{}, caller{}, low, "last leaves"},
		"a retry before a first attempt":          {retry, low, low, "first leaves"},
		"the last, if it is a retry":              {low, low, retry, "last leaves"},
		"the newest of two retries":               {retry, retry, low, "second leaves"},
		"the last of several retries":             {retry, low, retry, "last leaves"},
		"a lower priority before a retry":         {low, caller{Retry: true}, caller{}, "first leaves"},
		"a lower priority before the last":        {low, low, caller{Retry: true}, "second leaves"},
		"the last, not a retry that matters more": {caller{Retry: true}, caller{Retry: true}, low, "last leaves"},
		"a retry of a tenant with fewer waiting":  {retryOf("a"), caller{Tenant: "b"}, caller{Tenant: "b"}, "first leaves"},
		"the last, a retry of a new tenant":       {caller{Tenant: "a"}, caller{Tenant: "a"}, retryOf("b"), "last leaves"},
		"one of the tenant with more waiting":     {caller{Tenant: "a"}, caller{Tenant: "a"}, caller{Tenant: "b"}, "second leaves"},
		"the last, if its tenant waits for more":  {caller{Tenant: "a"}, caller{Tenant: "b"}, caller{Tenant: "b"}, "last leaves"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newCallers(t, inflight.Config{MaxWaiters: 2, Name: "logins"})
			l.startCaller("first", c.first)
			l.startCaller("second", c.second)
			l.startCaller("last", c.last)
			require.Equal(t, []string{c.want}, l.log, name)
			require.Equal(t, int64(2), l.limiter.Stats().Waiting, name)
			require.Len(t, l.serveAll(), 3, name)
			require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Refused: 1, Near: 1}, l.limiter.Stats(), name)
			require.EqualValues(t, 1, metricsByOutcome(t, l.limiter)["weir.limiter.queue_full"], name)
		})
	}
}

func TestAnOverloadedQueueServesTheNewestWithinTarget(t *testing.T) {
	for oldestFirst, want := range map[bool][]string{
		false: {"a leaves", "late leaves", "c", "b"},
		true:  {"a leaves", "late leaves", "b", "c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newCallers(t, inflight.Config{Queue: inflight.Queue{Target: 5 * ms, OldestFirst: oldestFirst}})
			l.startCaller("late", inflight.Caller{})
			for range 9 { // each is served after 12 ms, while the next one waits
				time.Sleep(12 * ms)
				l.startCaller("late", inflight.Caller{})
				l.passSlot()
			}
			require.Len(t, l.log, 9)
			l.log = nil // overloaded after 108 ms
			time.Sleep(ms)
			l.startCaller("a", inflight.Caller{}) // leaves after 5 ms, and so does the late one
			time.Sleep(3 * ms)
			l.startCaller("b", inflight.Caller{})
			time.Sleep(3 * ms)
			l.startCaller("c", inflight.Caller{})
			slices.Sort(l.log)
			require.Equal(t, want, l.serveAll())
		})
	}
}

// A queue is no longer overloaded when no caller has waited for the time Target. During the next
// two Intervals, a quarter of an Interval is enough for another overload.
func TestAnOverloadEnds(t *testing.T) {
	for pause, want := range map[time.Duration][]string{
		10 * ms:  {"a", "b leaves"}, // both at once, when the slot is free
		210 * ms: {"a", "b"},
	} {
		synctest.Test(t, func(t *testing.T) { requireAfterAnOverload(t, pause, want) })
	}
}

func requireAfterAnOverload(t *testing.T, pause time.Duration, want []string) {
	l := newCallers(t, inflight.Config{Queue: inflight.Queue{Target: 5 * ms, OldestFirst: true}})
	l.startCaller("late", inflight.Caller{})
	for range 10 {
		time.Sleep(12 * ms)
		l.startCaller("late", inflight.Caller{})
		l.passSlot()
	}
	time.Sleep(pause)
	require.Contains(t, l.log, "late leaves", "overloaded")
	l.log = nil
	for _, who := range []string{"a", "b"} {
		l.startCaller(who, inflight.Caller{})
		time.Sleep(30 * ms)
	}
	got := l.serveAll()
	slices.Sort(got)
	require.Equal(t, want, got)
}

// A burst is served whole. It is served in order until a caller has waited for three times Target.
func TestABurstIsServedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		apart       time.Duration
		oldestFirst bool
		want        []string
	}{
		"short waits":  {5 * ms, false, []string{"a", "b", "c"}}, // a has waited for 15 ms
		"long waits":   {6 * ms, false, []string{"c", "b", "a"}},
		"oldest first": {20 * ms, true, []string{"a", "b", "c"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newCallers(t, inflight.Config{Queue: inflight.Queue{Target: 5 * ms, OldestFirst: c.oldestFirst}})
			for _, who := range []string{"a", "b", "c"} {
				l.startCaller(who, inflight.Caller{})
				time.Sleep(c.apart)
			}
			require.Equal(t, c.want, l.serveAll(), name)
		})
	}
}

func TestAQueueIsValidated(t *testing.T) {
	shares := func(p inflight.Priority, share float64) inflight.Queue {
		return inflight.Queue{Shares: map[inflight.Priority]float64{p: share}}
	}
	for want, q := range map[string]inflight.Queue{
		"inflight: Queue.Target is -1ns, must be between 0 and 1h0m0s":             {Target: -1},
		"inflight: Queue.Interval is 1s without a Target, must be 0":               {Interval: time.Second},
		"inflight: Queue.Interval is 1ms, must be between Target 5ms and 1h0m0s":   {Target: 5 * ms, Interval: ms},
		"inflight: Queue.Shares has the priority 7, must be between -2 and 1":      shares(7, 1),
		"inflight: Queue.Shares of low is NaN, must be between 1e-6 and 1e6":       shares(inflight.Low, math.NaN()),
		"inflight: Queue.Shares of critical is 0, must be between 1e-6 and 1e6":    shares(inflight.Critical, 0),
		"inflight: Queue.Shares of normal is +Inf, must be between 1e-6 and 1e6":   shares(inflight.Normal, math.Inf(1)),
		"inflight: Queue.Target is 1h0m0.000000001s, must be between 0 and 1h0m0s": {Target: time.Hour + 1},
		"inflight: Queue.Interval is 2h0m0s, must be between Target 1s and 1h0m0s": {Target: time.Second, Interval: 2 * time.Hour},
	} {
		require.EqualError(t, inflight.Config{Limit: 1, Queue: q}.Validate(), want)
	}
	require.NoError(t, inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Hour}}.Validate())
}

func TestPrioritiesHaveWords(t *testing.T) {
	for p := inflight.Background; p <= inflight.Critical; p++ {
		text, err := p.MarshalText()
		require.NoError(t, err)
		var back inflight.Priority
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, p, back)
	}
	_, err := inflight.Priority(2).MarshalText()
	require.EqualError(t, err, "inflight: priority 2, must be between -2 and 1")
	var p inflight.Priority
	require.EqualError(t, p.UnmarshalText([]byte("high")), `inflight: priority "high", must be one of ["critical" "normal" "low" "background"]`)
	require.Equal(t, "critical", inflight.Priority(100).String(), "the nearest")
}

// Callers of all kinds come, wait and give up at random, while the limit changes.
func TestStormOfPriorities(t *testing.T) {
	l := inflight.New(inflight.Config{Limit: 2, MaxWaiters: 8, Name: "storm", Queue: inflight.Queue{Target: 50 * time.Microsecond}})
	var all sync.WaitGroup
	var served, refused, given atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				c := inflight.Caller{Priority: inflight.Priority(rand.IntN(4) - 2), Tenant: "abc"[:rand.IntN(4)], Retry: rand.IntN(2) == 0}
				slot, err := l.Acquire(inflight.WithCaller(ctx, c))
				switch {
				case err == nil:
					served.Add(1)
					if now := given.Add(1); now > 3 {
						t.Errorf("%d calls in flight", now)
					}
					if rand.IntN(10) == 0 {
						_ = l.SetLimit(1 + rand.IntN(3))
					}
					given.Add(-1)
					slot.Done(ctx, nil)
				case errors.Is(err, inflight.ErrFull):
					refused.Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.Zero(t, l.InFlight())
	s := l.Stats()
	require.Zero(t, s.Waiting)
	require.Equal(t, served.Load(), s.Allowed+s.Waited)
	require.Equal(t, refused.Load(), s.Refused)
	_, ok := tryAcquire(l)
	require.True(t, ok, "no waiter is left that would keep callers out")
}
