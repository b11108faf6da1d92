package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

const us = time.Microsecond

// pacer is what Smooth and WarmUp have in common.
type pacer interface {
	ReserveAt(t time.Time, n int, limit time.Duration) (time.Duration, bool)
	SetRateAt(t time.Time, r limiter.Rate) error
}

// caller is one caller of a pacer who sleeps as long as told.
type caller struct {
	t  *testing.T
	p  pacer
	at time.Duration
}

// acquire makes requests one after the other, and checks how long each waits.
func (c *caller) acquire(n int, want ...time.Duration) {
	c.t.Helper()
	for i, w := range want {
		wait, ok := c.p.ReserveAt(start.Add(c.at), n, limiter.Never)
		require.True(c.t, ok)
		require.Equal(c.t, w, wait, "request %d for %d at %s", i, n, c.at)
		c.at += wait
	}
}

func (c *caller) try(n int, limit time.Duration, want bool) {
	c.t.Helper()
	_, ok := c.p.ReserveAt(start.Add(c.at), n, limit)
	require.Equal(c.t, want, ok, "request for %d within %s at %s", n, limit, c.at)
}

func (c *caller) set(r limiter.Rate) { require.NoError(c.t, c.p.SetRateAt(start.Add(c.at), r)) }

func smooth(t *testing.T, perSecond float64) *caller {
	return &caller{t: t, p: limiter.NewSmoothAt(limiter.SmoothConfig{Rate: limiter.PerSecond(perSecond)}, start)}
}

func warmUp(t *testing.T, perSecond float64, period time.Duration, cold float64) *caller {
	c := limiter.WarmUpConfig{Rate: limiter.PerSecond(perSecond), Period: period, Cold: cold}
	return &caller{t: t, p: limiter.NewWarmUpAt(c, start)}
}

func TestSmoothStoresWhatIsNotUsed(t *testing.T) { // scenario 36
	c := smooth(t, 5)
	c.acquire(1, 0, 200*ms, 200*ms)
	c.at += 200 * ms
	c.acquire(1, 0, 200*ms)
	c = smooth(t, 5)
	c.at += 400 * ms
	c.acquire(1, 0, 0, 0, 200*ms)
	c = smooth(t, 5)
	c.at += 2 * sec
	c.acquire(1, 0, 0)
	c.acquire(3, 0)
	c.acquire(1, 0, 200*ms)
}

func TestSmoothPaysForTheOneBefore(t *testing.T) { // scenario 37
	c := smooth(t, 1)
	c.acquire(1, 0, 1*sec)
	c.acquire(2, 1*sec)
	c.acquire(4, 2*sec)
	c.acquire(8, 4*sec)
	c.acquire(1, 8*sec)
}

func TestSmoothTriesWithinALimit(t *testing.T) { // scenario 38
	c := smooth(t, 5)
	c.try(1, 0, true)
	c.try(1, 0, false)
	c.try(1, -sec, false)
	c.try(1, 100*ms, false)
	c.at += 100 * ms
	c.try(1, 100*ms, true)
	c.try(1, limiter.Never, true)
	c.try(0, limiter.Never, false)
	c.try(-1, limiter.Never, false)
}

func TestSmoothChangesItsRate(t *testing.T) { // scenarios 39 and the finite part of 40
	c := smooth(t, 1)
	c.acquire(1, 0, sec)
	c.set(limiter.PerSecond(2))
	c.acquire(1, sec)
	c.acquire(2, 500*ms)
	c.acquire(4, sec)
	c.acquire(1, 2*sec)
}

func TestSmoothNeverStoresMoreThanItsBurst(t *testing.T) { // scenario 41
	c := smooth(t, 1000)
	for _, perSecond := range []float64{1000, 1, 10, 1e6, 10, 1} {
		c.set(limiter.PerSecond(perSecond))
		c.at += 100 * sec
		c.acquire(int(perSecond), 0)
		c.acquire(1, 0) // owes for one now
		wait, _ := c.p.ReserveAt(start.Add(c.at), 1, limiter.Never)
		require.Equal(t, time.Duration(1e6/perSecond)*us, wait)
	}
}

// Scenario 42 and the traces of Guava, to the microsecond.
func TestWarmUpTraces(t *testing.T) {
	c := warmUp(t, 2, 4*sec, 3)
	cold := []time.Duration{0, 1375000 * us, 1125000 * us, 875000 * us, 625000 * us, 500000 * us, 500000 * us, 500000 * us}
	c.acquire(1, cold...)
	c.at += 500*ms + 4*sec
	c.acquire(1, cold...)
	c.at += 500*ms + 2*sec
	c.acquire(1, 0, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms)

	c = warmUp(t, 5, 4*sec, 10)
	colder := []time.Duration{0, 1752500 * us, 1257500 * us, 762500 * us, 300227 * us, 200000 * us, 200000 * us, 200000 * us}
	c.acquire(1, colder...)
	c.at += 200*ms + 4*sec // to cool down takes as long as to warm up
	c.acquire(1, colder...)
	c.at += 200*ms + 1*sec // not cold enough, with what was left
	c.acquire(1, 0, 200*ms, 200*ms)

	c = warmUp(t, 2, 4*sec, 3)
	c.acquire(1, cold...)
	c.at += 4500 * ms
	c.acquire(1, 0, 1375000*us, 1125000*us)
	c.set(limiter.PerSecond(4))
	c.acquire(1, 875000*us, 343750*us, 281250*us, 250000*us, 250000*us)
	c.at += 4250 * ms
	c.acquire(1, 0, 718750*us, 656250*us, 593750*us, 531250*us, 468750*us, 406250*us, 343750*us, 281250*us, 250000*us, 250000*us)

	c = warmUp(t, 4, 2*sec, 1)
	c.acquire(1, 0, 250*ms, 250*ms, 250*ms)
}

func TestWarmUpCostsTheSameHoweverItIsSplit(t *testing.T) { // scenario 42
	total := func(split ...int) time.Duration {
		c := warmUp(t, 2, 4*sec, 3)
		for _, n := range append(split, 1) {
			wait, _ := c.p.ReserveAt(start.Add(c.at), n, limiter.Never)
			c.at += wait
		}
		return c.at
	}
	require.Equal(t, total(5, 1), total(2, 3, 1))
	require.Equal(t, total(6), total(1, 1, 1, 1, 1, 1))
}

// The run of the source document 001: a request each second, for 1, 3, 10 and 1 permits at 4 a second, with the clock that
// it printed. The document's waits are 0, 0, 0, 0.499591 s and 0, 0, 0.687186, 1.559174 s.
func TestSourceDocument001(t *testing.T) {
	run := func(p pacer, clock []time.Duration, want []time.Duration) {
		for i, n := range []int{1, 3, 10, 1} {
			wait, ok := p.ReserveAt(start.Add(clock[i]), n, limiter.Never)
			require.True(t, ok)
			require.Equal(t, want[i], wait, "acquire(%d)", n)
		}
	}
	t0 := start.Add(1292 * us)
	run(limiter.NewSmoothAt(limiter.SmoothConfig{Rate: limiter.PerSecond(4)}, t0),
		[]time.Duration{1472 * us, 1004345 * us, 2004668 * us, 3504668*us - 499591*us}, []time.Duration{0, 0, 0, 499591 * us})
	run(limiter.NewWarmUpAt(limiter.WarmUpConfig{Rate: limiter.PerSecond(4), Period: 2 * sec}, start),
		[]time.Duration{1524 * us, 1001946 * us, 2689446*us - 687186*us, 5251946*us - 1559174*us}, []time.Duration{0, 0, 687186 * us, 1559174 * us})
}

func TestPacersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limiter.NewSmooth(limiter.SmoothConfig{Rate: limiter.PerSecond(4)})
		waits := []time.Duration{}
		for _, n := range []int{10, 1, 1} {
			waited, err := s.Wait(t.Context(), n)
			require.NoError(t, err)
			waits = append(waits, waited)
		}
		require.Equal(t, []time.Duration{0, 2500 * ms, 250 * ms}, waits)
		_, err := s.WaitAtMost(t.Context(), 1, 249*ms)
		require.ErrorIs(t, err, limiter.ErrLimited)
		_, err = s.Wait(t.Context(), 0)
		require.EqualError(t, err, "limiter: more than the limit")

		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		_, err = s.Wait(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waited, err := s.Wait(t.Context(), 1)
		require.NoError(t, err, "who could not wait owes nothing")
		require.Equal(t, 250*ms, waited)
	})
}

func TestPacersServeInOrderAndForgetThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limiter.NewWarmUp(limiter.WarmUpConfig{Rate: limiter.PerSecond(2), Period: 4 * sec, MaxWaiters: 3})
		l := newLine(t, waits{w})
		ctx, leave := context.WithCancel(t.Context())
		l.enter(t.Context(), "first", 1)
		l.enter(t.Context(), "second", 1)
		l.enter(ctx, "leaves", 100)
		l.enter(t.Context(), "third", 1)
		_, err := w.Wait(t.Context(), 1)
		require.ErrorIs(t, err, limiter.ErrQueueFull)
		leave()
		l.want(arrival{"first", 0, nil}, arrival{"leaves", 0, context.Canceled}, arrival{"second", 1375 * ms, nil}, arrival{"third", 2500 * ms, nil})
	})
}

func TestPacersPlanAnewWhenTheRateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limiter.NewSmooth(limiter.SmoothConfig{Rate: limiter.PerSecond(1)})
		l := newLine(t, waits{s})
		for _, who := range []string{"a", "b", "c", "d"} {
			l.enter(t.Context(), who, 1)
		}
		require.NoError(t, s.SetRate(limiter.PerSecond(10)))
		require.Error(t, s.SetRate(limiter.PerSecond(-1)))
		require.Error(t, s.SetRate(limiter.Unlimited()))
		l.want(arrival{"a", 0, nil}, arrival{"b", sec, nil}, arrival{"c", 1100 * ms, nil}, arrival{"d", 1200 * ms, nil})
	})
}

// waits makes a WaitLimiter of a pacer.
type waits struct {
	pacer interface {
		WaitAtMost(ctx context.Context, n int, limit time.Duration) (time.Duration, error)
	}
}

func (w waits) Wait(ctx context.Context, n int) error { return w.WaitAtMost(ctx, n, limiter.Never) }

func (w waits) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	_, err := w.pacer.WaitAtMost(ctx, n, maxWait)
	return err
}

func TestLeakyBucketDripsAndOverflows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(2), Capacity: 6})
		l := newLine(t, b)
		for _, who := range []string{"a", "b", "c", "d", "e", "f", "g"} { // scenario 44: seven at once, the last waits 3 s
			l.enter(t.Context(), who, 1)
		}
		require.ErrorIs(t, b.Wait(t.Context(), 1), limiter.ErrQueueFull)
		require.ErrorIs(t, b.WaitAtMost(t.Context(), 1, sec), limiter.ErrLimited)
		require.EqualError(t, b.Wait(t.Context(), 7), "limiter: more than the limit (limit 6)")
		l.want(arrival{"a", 0, nil}, arrival{"b", 500 * ms, nil}, arrival{"c", 1000 * ms, nil}, arrival{"d", 1500 * ms, nil},
			arrival{"e", 2000 * ms, nil}, arrival{"f", 2500 * ms, nil}, arrival{"g", 3000 * ms, nil})
		time.Sleep(hour)
		l = newLine(t, b) // nothing has gathered
		l.enter(t.Context(), "big", 3)
		l.enter(t.Context(), "after it", 1)
		l.want(arrival{"big", 0, nil}, arrival{"after it", 1500 * ms, nil})
	})
}

func TestLeakyBucketKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(3)})
		began := time.Now()
		for range 3*1000 + 1 {
			require.NoError(t, b.Wait(t.Context(), 1))
		}
		require.Equal(t, 1000*sec, time.Since(began))
		deadline, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		require.ErrorIs(t, b.Wait(deadline, 1), context.DeadlineExceeded)
	})
}

func TestPacerConfigsRefuseWhatMakesNoSense(t *testing.T) {
	require.PanicsWithError(t, "limiter: Rate is unset, must be above 0\nlimiter: MaxWaiters is -1, must be at least 1 (or 0 for no bound)\nlimiter: Burst is -1s, must be above 0 (or 0 for the default)",
		func() { limiter.NewSmooth(limiter.SmoothConfig{Burst: -sec, MaxWaiters: -1}) })
	require.PanicsWithError(t, "limiter: Rate is unlimited, must be finite\nlimiter: Period is 0s, must be at least 1µs\nlimiter: Cold is 0.5, must be at least 1 (or 0 for the default)",
		func() { limiter.NewWarmUp(limiter.WarmUpConfig{Rate: limiter.Unlimited(), Cold: 0.5}) })
	require.PanicsWithError(t, "limiter: Rate is -1/s, must be above 0\nlimiter: Capacity is -1, must be at least 1 (or 0 for the default)",
		func() { limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(-1), Capacity: -1}) })
}

// Scenario 43: a little slack, or none, but never a run without limit.
func TestTokenBucketAsAPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 2})
		l := newLine(t, b)
		l.enter(t.Context(), "a", 1)
		time.Sleep(2 * sec)
		for _, who := range []string{"b", "c", "d", "e"} {
			l.enter(t.Context(), who, 1)
		}
		l.want(arrival{"a", 0, nil}, arrival{"b", 2 * sec, nil}, arrival{"c", 2 * sec, nil}, arrival{"d", 3 * sec, nil}, arrival{"e", 4 * sec, nil})
	})
	b, admitted := bucket(limiter.PerMinute(7), 1), []int{0, 0, 0}
	for at := time.Duration(0); at <= 120*sec; {
		r := b.TakeAt(start.Add(at), 1)
		for i, until := range []time.Duration{sec, 60 * sec, 120 * sec} {
			if r.OK && at <= until {
				admitted[i]++
			}
		}
		at += r.RetryAfter
	}
	require.Equal(t, []int{1, 8, 15}, admitted)

	c := bucket(limiter.PerSecond(2), 1) // scenario 44, the smooth one
	for i := range 7 {
		reserve(t, c, 0, 1, time.Duration(i)*500*ms)
	}
	reserve(t, c, 800*ms, 1, 3500*ms)
	reserve(t, c, 800*ms, 1, 4000*ms)
	reserve(t, c, 800*ms, 1, 800*ms+3700*ms)
}

func TestSmoothOwesNoMoreThanThereIsTime(t *testing.T) {
	c := smooth(t, 0.001)
	for range 3 {
		_, ok := c.p.ReserveAt(start.Add(c.at), 1<<31-1, limiter.Never)
		require.True(t, ok)
	}
	for range 10_000 {
		c.p.ReserveAt(start.Add(c.at), 1<<31-1, limiter.Never)
	}
	wait, _ := c.p.ReserveAt(start, 1, limiter.Never)
	require.Equal(t, limiter.Never, wait)
	c.try(1, 100*year, false)
}

// What would take longer than time lasts is refused, and not let through at once.
func TestWarmUpThatIsAskedForTooMuch(t *testing.T) {
	w := limiter.NewWarmUpAt(limiter.WarmUpConfig{Rate: limiter.PerHour(0.5), Period: time.Hour}, start)
	_, ok := w.ReserveAt(start, 1<<31-1, limiter.Never)
	require.True(t, ok)
	wait, ok := w.ReserveAt(start, 1, limiter.Never-1)
	require.False(t, ok, "after %v", wait)

	w = limiter.NewWarmUpAt(limiter.WarmUpConfig{Rate: limiter.PerSecond(1e-310), Period: time.Hour}, start)
	_, ok = w.ReserveAt(start, 1, limiter.Never)
	require.True(t, ok)
	_, ok = w.ReserveAt(start, 1, limiter.Never-1)
	require.False(t, ok)
}
