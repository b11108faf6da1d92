package guava_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

const (
	us         = time.Microsecond
	ms         = time.Millisecond
	sec        = time.Second
	lastMoment = time.Duration(1<<62 - 1) // the last time that limiters distinguish
	year       = 365 * 24 * time.Hour
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// caller calls a pacer, and waits as long as the pacer says.
type caller struct {
	t  *testing.T
	p  *guava.RateLimiter
	at time.Duration
}

// acquire makes several requests one after the other and checks their waits.
func (c *caller) acquire(n int, want ...time.Duration) {
	c.t.Helper()
	for i, w := range want {
		wait, ok := c.p.ReserveAt(start.Add(c.at), n, limiter.Never)
		require.True(c.t, ok)
		require.Equal(c.t, w, wait, "request %d for %d at %s", i, n, c.at)
		c.at += wait
	}
}

func (c *caller) tryAcquire(n int, limit time.Duration, want bool) {
	c.t.Helper()
	_, ok := c.p.ReserveAt(start.Add(c.at), n, limit)
	require.Equal(c.t, want, ok, "request for %d within %s at %s", n, limit, c.at)
}

func (c *caller) setRate(r limiter.Rate) { require.NoError(c.t, c.p.SetRateAt(start.Add(c.at), r)) }

func newSmoothCaller(t *testing.T, perSecond float64) *caller {
	return &caller{t: t, p: guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(perSecond)}, start)}
}

func newWarmUpCaller(t *testing.T, perSecond float64, period time.Duration, cold float64) *caller {
	c := guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(perSecond), WarmUp: period, ColdFactor: cold}
	return &caller{t: t, p: guava.NewSmoothWarmingUpAt(c, start)}
}

func TestSmoothBurstyStoresUnusedPermits(t *testing.T) { // scenario 36
	c := newSmoothCaller(t, 5)
	c.acquire(1, 0, 200*ms, 200*ms)
	c.at += 200 * ms
	c.acquire(1, 0, 200*ms)
	c = newSmoothCaller(t, 5)
	c.at += 400 * ms
	c.acquire(1, 0, 0, 0, 200*ms)
	c = newSmoothCaller(t, 5)
	c.at += 2 * sec
	c.acquire(1, 0, 0)
	c.acquire(3, 0)
	c.acquire(1, 0, 200*ms)
}

func TestSmoothBurstyPaysForTheRequestBefore(t *testing.T) { // scenario 37
	c := newSmoothCaller(t, 1)
	c.acquire(1, 0, 1*sec)
	c.acquire(2, 1*sec)
	c.acquire(4, 2*sec)
	c.acquire(8, 4*sec)
	c.acquire(1, 8*sec)
}

func TestSmoothBurstyReservesWithinMaxWait(t *testing.T) { // scenario 38
	c := newSmoothCaller(t, 5)
	c.tryAcquire(1, 0, true)
	c.tryAcquire(1, 0, false)
	c.tryAcquire(1, -sec, false)
	c.tryAcquire(1, 100*ms, false)
	c.at += 100 * ms
	c.tryAcquire(1, 100*ms, true)
	c.tryAcquire(1, limiter.Never, true)
	c.tryAcquire(0, limiter.Never, false)
	c.tryAcquire(-1, limiter.Never, false)
}

func TestSmoothBurstyChangesItsRate(t *testing.T) { // scenarios 39 and the finite part of 40
	c := newSmoothCaller(t, 1)
	c.acquire(1, 0, sec)
	c.setRate(limiter.PerSecond(2))
	c.acquire(1, sec)
	c.acquire(2, 500*ms)
	c.acquire(4, sec)
	c.acquire(1, 2*sec)
}

func TestSmoothBurstyNeverStoresMoreThanItsBurst(t *testing.T) { // scenario 41
	c := newSmoothCaller(t, 1000)
	for _, perSecond := range []float64{1000, 1, 10, 1e6, 10, 1} {
		c.setRate(limiter.PerSecond(perSecond))
		c.at += 100 * sec
		c.acquire(int(perSecond), 0)
		c.acquire(1, 0) // charges one permit
		wait, _ := c.p.ReserveAt(start.Add(c.at), 1, limiter.Never)
		require.Equal(t, time.Duration(1e6/perSecond)*us, wait)
	}
}

// Scenario 42 and traces of Guava, exact to the microsecond.
func TestWarmUpTraces(t *testing.T) {
	c := newWarmUpCaller(t, 2, 4*sec, 3)
	cold := []time.Duration{0, 1375000 * us, 1125000 * us, 875000 * us, 625000 * us, 500000 * us, 500000 * us, 500000 * us}
	c.acquire(1, cold...)
	c.at += 500*ms + 4*sec
	c.acquire(1, cold...)
	c.at += 500*ms + 2*sec
	c.acquire(1, 0, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms, 500*ms)

	c = newWarmUpCaller(t, 5, 4*sec, 10)
	colder := []time.Duration{0, 1752500 * us, 1257500 * us, 762500 * us, 300227 * us, 200000 * us, 200000 * us, 200000 * us}
	c.acquire(1, colder...)
	c.at += 200*ms + 4*sec // cooling down takes as long as warming up
	c.acquire(1, colder...)
	c.at += 200*ms + 1*sec // not yet cold
	c.acquire(1, 0, 200*ms, 200*ms)

	c = newWarmUpCaller(t, 2, 4*sec, 3)
	c.acquire(1, cold...)
	c.at += 4500 * ms
	c.acquire(1, 0, 1375000*us, 1125000*us)
	c.setRate(limiter.PerSecond(4))
	c.acquire(1, 875000*us, 343750*us, 281250*us, 250000*us, 250000*us)
	c.at += 4250 * ms
	c.acquire(1, 0, 718750*us, 656250*us, 593750*us, 531250*us, 468750*us, 406250*us, 343750*us, 281250*us, 250000*us, 250000*us)

	c = newWarmUpCaller(t, 4, 2*sec, 1)
	c.acquire(1, 0, 250*ms, 250*ms, 250*ms)
}

func TestWarmUpCostsTheSameHoweverItIsSplit(t *testing.T) { // scenario 42
	total := func(split ...int) time.Duration {
		c := newWarmUpCaller(t, 2, 4*sec, 3)
		for _, n := range append(split, 1) {
			wait, _ := c.p.ReserveAt(start.Add(c.at), n, limiter.Never)
			c.at += wait
		}
		return c.at
	}
	require.Equal(t, total(5, 1), total(2, 3, 1))
	require.Equal(t, total(6), total(1, 1, 1, 1, 1, 1))
}

// The example of source document 001: one request per second, for 1, 3, 10 and 1 permits at 4 per
// second, at the times it printed. The waits in the document are 0, 0, 0, 0.499591 s and 0, 0,
// 0.687186, 1.559174 s.
func TestSourceDocument001(t *testing.T) {
	run := func(p *guava.RateLimiter, clock []time.Duration, want []time.Duration) {
		for i, n := range []int{1, 3, 10, 1} {
			wait, ok := p.ReserveAt(start.Add(clock[i]), n, limiter.Never)
			require.True(t, ok)
			require.Equal(t, want[i], wait, "acquire(%d)", n)
		}
	}
	t0 := start.Add(1292 * us)
	run(guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)}, t0),
		[]time.Duration{1472 * us, 1004345 * us, 2004668 * us, 3504668*us - 499591*us}, []time.Duration{0, 0, 0, 499591 * us})
	run(guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(4), WarmUp: 2 * sec}, start),
		[]time.Duration{1524 * us, 1001946 * us, 2689446*us - 687186*us, 5251946*us - 1559174*us}, []time.Duration{0, 0, 687186 * us, 1559174 * us})
}

func TestTheDebtOfSmoothBurstyIsBounded(t *testing.T) {
	c := newSmoothCaller(t, 0.001)
	for range 3 {
		_, ok := c.p.ReserveAt(start.Add(c.at), 1<<31-1, limiter.Never)
		require.True(t, ok)
	}
	for range 10_000 {
		c.p.ReserveAt(start.Add(c.at), 1<<31-1, limiter.Never)
	}
	wait, _ := c.p.ReserveAt(start, 1, limiter.Never)
	require.Equal(t, limiter.Never, wait)
	c.tryAcquire(1, 100*year, false)
}

// A wait beyond the last time is refused instead of being allowed at once.
func TestSmoothWarmingUpRefusesWaitsThatAreTooLong(t *testing.T) {
	w := guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.Per(0.5, time.Hour), WarmUp: time.Hour}, start)
	_, ok := w.ReserveAt(start, 1<<31-1, limiter.Never)
	require.True(t, ok)
	wait, ok := w.ReserveAt(start, 1, limiter.Never-1)
	require.False(t, ok, "after %v", wait)

	w = guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(1e-310), WarmUp: time.Hour}, start)
	_, ok = w.ReserveAt(start, 1, limiter.Never)
	require.True(t, ok)
	_, ok = w.ReserveAt(start, 1, limiter.Never-1)
	require.False(t, ok)
}

func TestConfigsNameInvalidFields(t *testing.T) {
	require.PanicsWithError(t, "limiter: Rate is unset, must be above 0\nguava: MaxWaiters is -1, must be at least 1 (or 0 for no bound)\nguava: MaxBurst is -1s, must be above 0 (or 0 for the default)",
		func() { guava.NewSmoothBursty(guava.SmoothBurstyConfig{MaxBurst: -sec, MaxWaiters: -1}) })
	require.PanicsWithError(t, "guava: Rate is unlimited, must be finite\nguava: WarmUp is 0s, must be at least 1µs\nguava: ColdFactor is 0.5, must be at least 1 (or 0 for the default)",
		func() {
			guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: limiter.Unlimited(), ColdFactor: 0.5})
		})
}

func TestTheLongestDebtOfAPacerOnlyGrows(t *testing.T) {
	p := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1e6 / math.Exp2(33))}, start)
	_, ok := p.ReserveAt(start, 1<<30, 0) // 2⁶³ µs
	require.True(t, ok)
	for i := range 4 {
		wait, ok := p.ReserveAt(start, 1<<30, limiter.Never)
		require.True(t, ok, "request %d", i)
		require.Equal(t, limiter.Never, wait, "request %d", i)
	}
}

func TestWaitsAreExactUpToTheLastTime(t *testing.T) {
	p := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)}, start)
	for _, debt := range []struct {
		each time.Duration
		n    int
	}{{1e6 * sec, 4611}, {sec, 686018}, {us, 427387}} { // 4,611,686,018,427,387 µs in all
		require.NoError(t, p.SetRateAt(start, limiter.Per(1, debt.each)))
		_, ok := p.ReserveAt(start, debt.n, limiter.Never)
		require.True(t, ok)
	}
	wait, ok := p.ReserveAt(start, 1, limiter.Never)
	require.True(t, ok)
	require.Equal(t, lastMoment.Truncate(us), wait)
	wait, _ = p.ReserveAt(start, 1, limiter.Never) // one microsecond longer
	require.Equal(t, limiter.Never, wait)
}

// The permits of the idle time are rounded differently at the two rates. Guava stores them at the
// old rate and then scales them to the new one. The exact time is 800 ms.
func TestAChangeOfRateStoresAtTheOldRateFirst(t *testing.T) {
	idle, before, now := 200e3, 3.0, 1.0
	stored := idle / (1e6 / before)
	stored = stored * now / before
	want := time.Duration((1-stored)*(1e6/now)) * us
	require.Equal(t, 799_999*us, want)

	c := newSmoothCaller(t, before)
	c.at += 200 * ms
	c.setRate(limiter.PerSecond(now))
	c.acquire(1, 0, want)
}

// The permits cost 2⁶³ µs, the first number beyond int64.
func TestTheLongestDebtIsOwed(t *testing.T) {
	p := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1e6 / math.Exp2(33))}, start)
	_, ok := p.ReserveAt(start, 1<<30, 0)
	require.True(t, ok, "the first request owes nothing")
	_, ok = p.ReserveAt(start, 1, time.Hour)
	require.False(t, ok)
}

func TestTimesBeforeThePacerBeganAreRoundedDown(t *testing.T) {
	for before, want := range map[time.Duration]time.Duration{
		1500 * time.Nanosecond: 2 * time.Microsecond,
		time.Microsecond:       time.Microsecond,
	} {
		p := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)}, start)
		_, ok := p.ReserveAt(start, 0, 0) // the pacer begins here
		require.False(t, ok)
		wait, ok := p.ReserveAt(start.Add(-before), 1, time.Hour)
		require.True(t, ok)
		require.Equal(t, want, wait, "%v before", before)
	}
}

// A zero time counts as a time that goes back.
func TestAZeroTimeAddsNoTokens(t *testing.T) {
	for name, p := range map[string]*guava.RateLimiter{
		"smooth":  guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(1)}, start),
		"warm-up": guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(1), WarmUp: sec}, start),
	} {
		_, ok := p.ReserveAt(start, 100, 0)
		require.True(t, ok, name)
		for range 3 {
			_, ok = p.ReserveAt(time.Time{}, 1, year)
			require.False(t, ok, name)
			require.NoError(t, p.SetRateAt(time.Time{}, limiter.PerSecond(1)))
		}
	}
}

// The next permit comes after the last time that a RateLimiter can represent.
func TestAWaitOfCenturiesIsNever(t *testing.T) {
	for _, each := range []time.Duration{60 * year, 60*year + 1, 120 * year, 240 * year, math.MaxInt64} {
		p := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.Per(1, each)}, start)
		var wait time.Duration
		for range 5 {
			wait, _ = p.ReserveAt(start, 1, limiter.Never)
		}
		require.Equal(t, limiter.Never, wait, "%s", each)
	}
}
