package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// certain is a source of chance that refuses whatever may be refused; with it and no
// bounds, a call is refused if and only if the probability is above 0.
func certain() float64 { return 0 }

// never is an interval after which no call is always allowed.
const never = time.Duration(math.MaxInt64)

// feed records results at the time u without asking the throttle.
func feed(t *testing.T, th *throttle.Throttle, u time.Time, good, bad int) {
	t.Helper()
	permits := make([]throttle.Permit, good+bad)
	for i := range permits {
		for try := 0; ; try++ {
			var err error
			if permits[i], err = th.AllowAt(u); err == nil {
				break
			}
			require.Less(t, try, 100_000, "the throttle lets nothing pass")
		}
	}
	for i := range permits {
		o := window.Success
		if i >= good {
			o = window.Failure
		}
		require.True(t, permits[i].RecordAt(u, o))
	}
}

// seeded returns a source of random numbers that is the same in each run.
func seeded() func() float64 { return rand.New(rand.NewPCG(1, 2)).Float64 }

func TestThrottleRefusesWithTheProbabilityOfTheFormula(t *testing.T) {
	for _, c := range []struct {
		k         float64
		good, bad int
		want      float64
	}{
		{2, 0, 20, 20.0 / 21},
		{2, 10, 90, 80.0 / 101},
		{2, 49, 51, 2.0 / 101},
		{2, 50, 50, 0}, // half of them: nothing is refused yet
		{2, 100, 0, 0},
		{1, 99, 1, 1.0 / 101},
		{1.5, 40, 60, 40.0 / 101},
		{1e300, 1, 99, 0},
	} {
		th := throttle.NewAt("t", throttle.Config{K: c.k, MaxRefusal: 1}, t0).Fix(seeded(), never)
		feed(t, th, t0, c.good, c.bad)
		require.InDelta(t, c.want, th.RefusalRateAt(t0), 1e-12, "K %v, %d good, %d bad", c.k, c.good, c.bad)

		const calls = 100_000
		refused := 0
		for range calls {
			if _, err := th.AllowAt(t0); err != nil {
				require.ErrorIs(t, err, throttle.ErrRefused)
				refused++
			}
		}
		require.InDelta(t, c.want, float64(refused)/calls, 0.005, "K %v, %d good, %d bad", c.k, c.good, c.bad)
		require.EqualValues(t, refused, th.CountsAt(t0).Refused)
	}
}

func TestThrottleRefusesTheSameCallsWithTheSameSeed(t *testing.T) {
	var runs [2]string
	for i := range runs {
		th := throttle.NewAt("t", throttle.Config{}, t0).Fix(seeded(), time.Second)
		feed(t, th, t0, 10, 50)
		for range 200 {
			_, err := th.AllowAt(t0)
			runs[i] += fmt.Sprint(err == nil)[:1]
		}
	}
	require.Equal(t, runs[0], runs[1])
	require.Contains(t, runs[0], "t")
	require.Contains(t, runs[0], "f")
}

func TestThrottleRefusesNothingBelowMinCalls(t *testing.T) {
	for least, calls := range map[int]int{0: 20, 7: 7, 1: 1} {
		th := throttle.NewAt("t", throttle.Config{MinCalls: least}, t0).Fix(certain, never)
		for n := range calls {
			p, err := th.AllowAt(t0)
			require.NoError(t, err, "MinCalls %d after %d failures", least, n)
			p.RecordAt(t0, window.Failure)
		}
		_, err := th.AllowAt(t0)
		require.ErrorIs(t, err, throttle.ErrRefused, "MinCalls %d after %d failures", least, calls)
	}
}

func TestThrottleCountsItsRefusalsAmongTheRequestsOnlyIfToldTo(t *testing.T) {
	for _, counted := range []bool{false, true} {
		refuse := 0.0
		c := throttle.Config{CountRefused: counted, MaxRefusal: 1}
		th := throttle.NewAt("t", c, t0).Fix(func() float64 { return refuse }, never)
		feed(t, th, t0, 10, 20)
		require.InDelta(t, 10.0/31, th.RefusalRateAt(t0), 1e-12)
		for range 70 {
			_, err := th.AllowAt(t0)
			require.Error(t, err)
		}
		want := map[bool]float64{false: 10.0 / 31, true: 80.0 / 101}[counted]
		require.InDelta(t, want, th.RefusalRateAt(t0), 1e-12, "counted: %t", counted)
		require.EqualValues(t, 70, th.CountsAt(t0).Refused)
	}
}

func TestThrottleBoundsTheProbability(t *testing.T) {
	rate := func(c throttle.Config, good, bad int) float64 {
		th := throttle.NewAt("t", c, t0)
		feed(t, th, t0, good, bad)
		return th.RefusalRateAt(t0)
	}
	require.InDelta(t, 0.99, rate(throttle.Config{}, 0, 500), 0, "one call in a hundred passes by default")
	require.InDelta(t, 0.7, rate(throttle.Config{MaxRefusal: 0.7}, 0, 500), 0)
	require.InDelta(t, 500.0/501, rate(throttle.Config{MaxRefusal: 1}, 0, 500), 1e-12)
}

func TestThrottleLetsOneCallPassEachInterval(t *testing.T) {
	for every, want := range map[time.Duration]int{time.Second: 10, 100 * time.Millisecond: 100, never: 0} {
		th := throttle.NewAt("t", throttle.Config{Window: time.Hour}, t0).Fix(certain, every)
		feed(t, th, t0, 0, 20)
		passed, last := 0, t0
		for at := t0; !at.After(t0.Add(10 * time.Second)); at = at.Add(time.Millisecond) {
			if _, err := th.AllowAt(at); err == nil {
				require.Equal(t, max(every, 100*time.Millisecond), max(at.Sub(last), 100*time.Millisecond), "no sooner and no later")
				passed, last = passed+1, at
			}
		}
		require.Equal(t, want, passed, "every %v", every)
	}
}

func TestThrottleCountsAPassByChanceAsThePassOfTheInterval(t *testing.T) {
	dice := 0.0
	th := throttle.NewAt("t", throttle.Config{}, t0).Fix(func() float64 { return dice }, time.Second)
	feed(t, th, t0, 0, 20)
	allowed := func(after time.Duration) bool {
		_, err := th.AllowAt(t0.Add(after))
		return err == nil
	}
	dice = 0.999
	require.True(t, allowed(900*time.Millisecond), "by chance")
	dice = 0
	require.False(t, allowed(1800*time.Millisecond))
	require.True(t, allowed(1900*time.Millisecond), "a second after the last")
	require.False(t, allowed(1900*time.Millisecond), "one and no more")
	require.False(t, allowed(-time.Hour), "a stale time gets none")
	_, err := th.AllowAt(time.Time{})
	require.Error(t, err, "however stale it is")
}

// outage runs a steady load against a service that is down for its first half minute,
// and returns the share of the calls in each second after it that reach it.
func outage(t *testing.T, c throttle.Config, seconds int) (during float64, after []float64) {
	t.Helper()
	const perSecond, down = 100, 30
	th := throttle.NewAt("t", c, t0).Fix(seeded(), time.Second)
	for s := range down + seconds {
		made := 0
		for i := range perSecond {
			at := t0.Add(time.Duration(s)*time.Second + time.Duration(i)*time.Second/perSecond)
			p, err := th.AllowAt(at)
			if err != nil {
				continue
			}
			made++
			p.RecordAt(at, map[bool]window.Outcome{true: window.Failure, false: window.Success}[s < down])
		}
		switch {
		case s >= down:
			after = append(after, float64(made)/perSecond)
		case s >= down/2:
			during += float64(made) / perSecond / (down / 2)
		}
	}
	return during, after
}

func TestThrottleRecoversAfterAnOutage(t *testing.T) {
	during, after := outage(t, throttle.Config{}, 15)
	require.InDelta(t, math.Sqrt(1000)/1000, during, 0.02, "of N calls in a window √N are made")
	require.GreaterOrEqual(t, during*100*15, 15.0, "a call a second at least")
	for s, share := range after[10:] {
		require.InDelta(t, 1, share, 0, "%d s after the outage, a window and more", s+10)
	}

	during, after = outage(t, throttle.Config{CountRefused: true}, 120)
	require.Less(t, during, 0.03, "the service is all but left alone")
	require.Less(t, after[10], 0.5, "it takes longer than a window")
	require.InDelta(t, 1, after[119], 0.05, "and less than two minutes")
}

func TestThrottleRefusesNothingAfterASilence(t *testing.T) {
	for _, counted := range []bool{false, true} {
		th := throttle.NewAt("t", throttle.Config{CountRefused: counted}, t0).Fix(certain, never)
		feed(t, th, t0, 0, 20)
		for range 500 {
			_, err := th.AllowAt(t0)
			require.Error(t, err)
		}
		later := t0.Add(11 * time.Second)
		require.Zero(t, th.RefusalRateAt(later))
		require.Zero(t, th.CountsAt(later).Calls()+th.CountsAt(later).Refused)
		_, err := th.AllowAt(later)
		require.NoError(t, err)
	}
}

func TestThrottleRunsAndClassifies(t *testing.T) {
	th := throttle.New("t", throttle.Config{Classify: breaker.Ignore(context.DeadlineExceeded)})
	require.NoError(t, th.Run(bg(), succeed))
	require.ErrorIs(t, th.Run(bg(), fail), errDown)
	v, err := throttle.Do(bg(), th, func(context.Context) (int, error) { return 7, errDown })
	require.Equal(t, 7, v)
	require.ErrorIs(t, err, errDown)
	require.Error(t, th.Run(bg(), func(context.Context) error { return fmt.Errorf("slow: %w", context.DeadlineExceeded) }))
	require.PanicsWithValue(t, "boom", func() { _ = th.Run(bg(), func(context.Context) error { panic("boom") }) })
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = throttle.Do(bg(), th, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	})
	wg.Wait()
	gone, cancel := context.WithCancel(bg())
	require.ErrorIs(t, th.Run(gone, func(ctx context.Context) error { cancel(); return ctx.Err() }), context.Canceled)
	require.ErrorIs(t, th.Run(gone, succeed), context.Canceled, "not called, not counted")
	require.Panics(t, func() { _ = th.Run(bg(), nil) })
	totals := th.Totals()
	require.EqualValues(t, 1, totals.Successes)
	require.EqualValues(t, 4, totals.Failures, "two errors, a panic, an end of the goroutine")
	require.EqualValues(t, 2, totals.Ignored, "what Classify says, and a caller who gave up")
	require.Zero(t, totals.Refused)
}

func TestThrottleRefusalsCallNothingAndMatch(t *testing.T) {
	th := throttle.New("search", throttle.Config{}).Fix(certain, never)
	for range 20 {
		_ = th.Run(bg(), fail)
	}
	called := false
	fn := func(context.Context) (int, error) { called = true; return 1, nil }
	v, err := throttle.Do(bg(), th, fn)
	require.Zero(t, v)
	require.False(t, called)
	require.ErrorIs(t, err, throttle.ErrRefused)
	require.ErrorIs(t, err, sentinel.ErrRefused)
	require.NotErrorIs(t, err, breaker.ErrOpen)
	require.Equal(t, time.Second, weir.RetryAfter(err), "one call a second is allowed in any case")
	require.EqualError(t, err, `throttle "search" refuses a share of the calls because too many fail`)
	require.Equal(t, window.Ignored, breaker.DefaultClassify(err), "a breaker around it takes it for no evidence")
}

func TestThrottlePermitCountsOnce(t *testing.T) {
	th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome { panic("odd") }})
	p, err := th.Allow()
	require.NoError(t, err)
	require.True(t, p.Record(window.Failure))
	require.False(t, p.Record(window.Success))
	require.False(t, p.RecordAt(time.Now(), window.Success))
	require.False(t, p.Done(bg(), nil))
	var none throttle.Permit
	require.False(t, none.Record(window.Success))

	p, _ = th.Allow()
	require.PanicsWithValue(t, "odd", func() { p.Done(bg(), nil) })
	require.False(t, p.Record(window.Success))
	p, _ = th.Allow()
	p.Record(window.Outcome(9))
	totals := th.Totals()
	require.EqualValues(t, 1, totals.Failures)
	require.EqualValues(t, 2, totals.Ignored)
	require.Zero(t, totals.Successes)
}

func TestThrottleOnTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("t", throttle.Config{}).Fix(certain, time.Second)
		for range 20 {
			require.ErrorIs(t, th.Run(bg(), fail), errDown)
		}
		require.ErrorIs(t, th.Run(bg(), succeed), throttle.ErrRefused)
		time.Sleep(time.Second)
		require.NoError(t, th.Run(bg(), succeed), "one a second")
		require.ErrorIs(t, th.Run(bg(), succeed), throttle.ErrRefused)
		require.InDelta(t, 19.0/22, th.RefusalRate(), 1e-12)
		require.EqualValues(t, 20, th.Counts().Failures)
		time.Sleep(10 * time.Second)
		require.NoError(t, th.Run(bg(), succeed))
		require.Zero(t, th.RefusalRate())
	})
}

func TestThrottleShowsItsFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("t", throttle.Config{}).Fix(certain, time.Second)
		want := map[string]float64{
			"calls success": 0, "calls failure": 0, "calls ignored": 0, "calls refused": 0,
			"window.calls success": 0, "window.calls failure": 0, "window.calls ignored": 0, "window.calls refused": 0,
			"refusal_ratio ": 0, "threshold.min_calls ": 20,
		}
		require.Equal(t, want, observe(th))
		for range 20 {
			_ = th.Run(bg(), fail)
		}
		_ = th.Run(bg(), fail)
		for k, v := range map[string]float64{"failure": 20, "refused": 1} {
			want["calls "+k], want["window.calls "+k] = v, v
		}
		want["window.failure_ratio "], want["refusal_ratio "] = 1, 20.0/21
		require.Equal(t, want, observe(th))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			for range th.Observe {
			}
		}))
		_, err := read.New(func(s *stat.Series) *stat.Series { return s }, th)
		require.NoError(t, err)
	})
}

func TestThrottleConfigSaysWhatIsWrong(t *testing.T) {
	require.NoError(t, throttle.Config{}.Validate())
	require.NoError(t, throttle.Config{K: 1, MinCalls: 1, MaxRefusal: 1, Window: time.Millisecond}.Validate())
	bad := throttle.Config{
		K: 0.5, MinCalls: -1, MaxRefusal: 1.1, Window: -1,
	}
	want := "throttle: K is 0.5, must be finite and at least 1\n" +
		"throttle: MinCalls is -1, must be at least 1\n" +
		"throttle: MaxRefusal is 1.1, must be above 0 and at most 1\n"
	err := bad.Validate()
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, "throttle: Window: ")
	require.PanicsWithError(t, err.Error(), func() { throttle.New("t", bad) })
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := throttle.Config{K: odd, MaxRefusal: odd}.Validate()
		require.Equal(t, 1, strings.Count(err.Error(), "\n"), err)
	}
}

func TestThrottleCallsAllocateNothing(t *testing.T) {
	th := throttle.New("t", throttle.Config{MaxRefusal: 0.5})
	one := func(context.Context) (int, error) { return 1, errDown }
	for range 30 {
		_ = th.Run(bg(), fail)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = th.Run(bg(), fail)
		_, _ = throttle.Do(bg(), th, one)
		if p, err := th.Allow(); err == nil {
			p.Record(window.Failure)
		}
	}))
	require.NotZero(t, th.Totals().Refused)
}

// Every call is either made and counted, or refused and counted.
func TestThrottleAmidTraffic(t *testing.T) {
	for _, counted := range []bool{false, true} {
		th := throttle.New("t", throttle.Config{CountRefused: counted, Window: 10 * time.Millisecond}).Fix(rand.Float64, time.Millisecond)
		const callers, calls = 8, 5000
		var wg sync.WaitGroup
		made := make([]int64, callers)
		for i := range callers {
			wg.Go(func() {
				for n := range calls {
					err := th.Run(bg(), func(context.Context) error {
						made[i]++
						if n%8 != 0 {
							return errDown
						}
						return nil
					})
					if n%64 == 0 {
						for range th.Observe {
						}
					}
					if err != nil && !errors.Is(err, errDown) && !errors.Is(err, throttle.ErrRefused) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sum := int64(0)
		for _, n := range made {
			sum += n
		}
		totals := th.Totals()
		require.Equal(t, sum, totals.Calls())
		require.Equal(t, callers*calls-sum, totals.Refused)
		require.NotZero(t, totals.Refused)
	}
}

// FuzzThrottle compares a throttle with the formula computed from a list of all results.
func FuzzThrottle(f *testing.F) {
	f.Add(uint64(1), false, uint8(20))
	f.Add(uint64(2), true, uint8(8))
	f.Add(uint64(3), true, uint8(11))
	f.Fuzz(func(t *testing.T, seed uint64, counted bool, k uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := throttle.Config{K: 1 + float64(k)/16, MinCalls: 5, CountRefused: counted, MaxRefusal: 0.95}
		th := throttle.NewAt("t", c, t0).Fix(r.Float64, never)
		var happened [3]map[int64]float64 // by what it was and by bucket of a second
		for i := range happened {
			happened[i] = map[int64]float64{}
		}
		at := time.Duration(0)
		for range 2000 {
			at += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
			if r.IntN(500) == 0 {
				at += time.Duration(r.IntN(15)) * time.Second
			}
			var sums [3]float64
			for i := range sums {
				for b := int64(at/time.Second) - 9; b <= int64(at/time.Second); b++ {
					sums[i] += happened[i][b]
				}
			}
			good, requests := sums[window.Success], sums[0]+sums[1]
			if counted {
				requests += sums[2]
			}
			want := max(0, (requests-c.K*good)/(requests+1))
			if requests < 5 {
				want = 0
			}
			u := t0.Add(at)
			require.InDelta(t, min(want, 0.95), th.RefusalRateAt(u), 1e-9)
			p, err := th.AllowAt(u)
			if err != nil {
				require.Positive(t, want)
				happened[2][int64(at/time.Second)]++
				continue
			}
			o := window.Outcome(r.IntN(2))
			happened[o][int64(at/time.Second)]++
			p.RecordAt(u, o)
		}
	})
}

// A search service that is called through a throttle, which refuses nothing while the calls succeed.
func Example() {
	search := throttle.New("search", throttle.Config{})
	answered, refused := 0, 0
	for range 20 {
		hits, err := throttle.Do(context.Background(), search, func(context.Context) (int, error) {
			return 42, nil // a call to the search service
		})
		switch {
		case errors.Is(err, throttle.ErrRefused):
			refused++
		case err == nil && hits == 42:
			answered++
		}
	}
	fmt.Println(answered, "answered,", refused, "refused")
	// Output: 20 answered, 0 refused
}

func ExampleThrottle() {
	search := throttle.New("search", throttle.Config{})
	down := func(context.Context) error { return errors.New("overloaded") }
	for range 20 {
		_ = search.Run(context.Background(), down)
	}
	fmt.Printf("%.0f%% of the calls are refused\n", 100*search.RefusalRate())
	// Output: 95% of the calls are refused
}

func ExampleDo() {
	search := throttle.New("search", throttle.Config{})
	hits, err := throttle.Do(context.Background(), search, func(context.Context) (int, error) { return 42, nil })
	fmt.Println(hits, err)
	// Output: 42 <nil>
}

func ExampleErrRefused() {
	search := throttle.New("search", throttle.Config{})
	for {
		err := search.Run(context.Background(), func(context.Context) error { return errors.New("overloaded") })
		if errors.Is(err, throttle.ErrRefused) {
			fmt.Println(err)
			fmt.Println("one call is allowed in", weir.RetryAfter(err), "at the latest")
			return
		}
	}
	// Output:
	// throttle "search" refuses a share of the calls because too many fail
	// one call is allowed in 1s at the latest
}

func ExampleConfig() {
	// As in the book: over two minutes, its own refusals counted.
	c := throttle.Config{Window: 2 * time.Minute, CountRefused: true, MaxRefusal: 1}
	fmt.Println(c.Validate(), throttle.Config{K: 0.5}.Validate())
	// Output: <nil> throttle: K is 0.5, must be finite and at least 1
}

func ExamplePermit() {
	search := throttle.New("search", throttle.Config{})
	permit, err := search.Allow()
	if err != nil {
		return // refused
	}
	fmt.Println(permit.Record(window.Success), permit.Record(window.Success))
	// Output: true false
}

func BenchmarkThrottle(b *testing.B) {
	for name, c := range map[string]throttle.Config{"well": {}, "down": {}, "down, refusals counted": {CountRefused: true}} {
		b.Run(name, func(b *testing.B) {
			th, fn := throttle.New("t", c), succeed
			if name != "well" {
				fn = fail
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = th.Run(bg(), fn)
			}
		})
	}
}

func BenchmarkThrottleParallel(b *testing.B) {
	th := throttle.New("t", throttle.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = th.Run(bg(), fail)
		}
	})
}
