package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// newSlidingWindow returns a sliding window for TakeAt.
func newSlidingWindow(limit int, span time.Duration, buckets int) *limiter.Window {
	return limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: limit, Window: span, Buckets: buckets}, start)
}

func newFixedWindow(limit int, span time.Duration) *limiter.Window {
	return limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: limit, Window: span}, start)
}

func newSlidingLog(limit int, span time.Duration) *limiter.Window {
	return limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: limit, Window: span}, start)
}

// Scenario 45: the fixed window allows twice its limit around a boundary, and the log does not.
func TestBoundsAtWindowBoundaries(t *testing.T) {
	runSteps(t, newFixedWindow(10, sec),
		step{900 * ms, 10, "ok 0/10 reset 100ms"}, step{900 * ms, 1, "refused 0/10 retry 100ms reset 100ms"},
		step{1100 * ms, 10, "ok 0/10 reset 900ms"}, step{1100 * ms, 1, "refused 0/10 retry 900ms reset 900ms"})
	runSteps(t, newSlidingWindow(10, sec, 10),
		step{950 * ms, 10, "ok 0/10 reset 1.05s"}, step{1100 * ms, 1, "refused 0/10 retry 900ms reset 900ms"},
		step{2000*ms - 1, 1, "refused"}, step{2000 * ms, 10, "ok"})
	runSteps(t, newSlidingLog(10, sec),
		step{900 * ms, 10, "ok 0/10 reset 1s"}, step{1100 * ms, 1, "refused 0/10 retry 800ms reset 800ms"},
		step{1900*ms - 1, 1, "refused"}, step{1900 * ms, 10, "ok"})
}

func TestFixedWindowIsAlignedToUnixTime(t *testing.T) {
	t0 := time.Date(2026, 3, 1, 12, 0, 42, 0, time.UTC)
	w := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 5, Window: time.Minute}, t0)
	require.Equal(t, "ok 4/5 reset 18s", resultText(w.TakeAt(t0, 1)))
	w = limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 5, Window: 24 * hour}, time.Date(1960, 3, 1, 18, 0, 0, 0, time.UTC))
	require.Equal(t, "ok 4/5 reset 6h0m0s", resultText(w.TakeAt(time.Date(1960, 3, 1, 18, 0, 0, 0, time.UTC), 1)))
}

// Scenarios 48 and 49. A token comes back after the window and one bucket, even if Take is called
// often.
func TestSlidingWindowForgetsOnTime(t *testing.T) {
	for _, poll := range []time.Duration{0, 9 * sec, 19 * sec} {
		w := newSlidingWindow(1, time.Minute, 6)
		runSteps(t, w, step{0, 1, "ok"})
		for at := poll; poll > 0 && at < 70*sec; at += poll {
			runSteps(t, w, step{at, 1, "refused"})
		}
		runSteps(t, w, step{70*sec - 1, 1, "refused 0/1 retry 1ns reset 1ns"}, step{70 * sec, 1, "ok"})
	}
	for _, idle := range []time.Duration{60 * sec, 61 * sec, 3600 * sec} {
		w := newSlidingWindow(1, time.Minute, 60)
		runSteps(t, w, step{0, 1, "ok"}, step{idle + sec, 1, "ok"}, step{idle + sec + 60*sec, 1, "refused"}, step{idle + sec + 61*sec, 1, "ok"})
	}
}

// Scenario 50: refused requests count only with CountRefused.
func TestRefusedRequestsDoNotCount(t *testing.T) {
	for _, penalise := range []bool{false, true} {
		want := 500
		if penalise {
			want = 5
		}
		log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 5, Window: time.Minute, CountRefused: penalise}, start)
		require.Equal(t, want, offerEvenly(log, 600, 100*time.Minute), "log, CountRefused %t", penalise)
		sliding := limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: 5, Window: time.Minute, Buckets: 60, CountRefused: penalise}, start)
		if !penalise {
			want = 430 // a window and one part are 61 s, and the next request comes at 70 s
		}
		require.Equal(t, want, offerEvenly(sliding, 600, 100*time.Minute), "window, CountRefused %t", penalise)
	}
	fixed := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 5, Window: time.Minute, CountRefused: true}, start)
	runSteps(t, fixed, step{0, 6, "refused 5/5 retry never reset 0s"}, step{0, 3, "ok 2/5 reset 1m0s"}, step{0, 3, "refused 0/5 retry 1m0s reset 1m0s"}, step{0, 9, "refused 0/5 retry never reset 1m0s"},
		step{0, 1, "refused"}, step{time.Minute, 5, "ok"})
}

func TestCountRefusedLocksOutACallerThatKeepsAsking(t *testing.T) {
	log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 2, Window: sec, CountRefused: true}, start)
	runSteps(t, log, step{0, 2, "ok"},
		// one of the two at 0 still counts, and this one
		step{900 * ms, 1, "refused 0/2 retry 100ms reset 1s"},
		step{1000 * ms, 2, "refused 0/2 retry 1s reset 1s"},
		step{1900 * ms, 1, "refused 0/2 retry 100ms reset 1s"},
		step{2900 * ms, 2, "ok"})
}

func TestManyRequestsAtOneTimeAreCounted(t *testing.T) { // scenario 51
	for _, l := range []limiter.TimedLimiter{newFixedWindow(5, sec), newSlidingWindow(5, sec, 10), newSlidingLog(5, sec), newBucket(limiter.PerSecond(5), 5)} {
		require.Equal(t, 5, offerEvenly(l, 100, ms))
	}
}

// Scenario 64: a refunded token does not come back a second time when it expires.
func TestRefundedTokensComeBackOnce(t *testing.T) {
	log := newSlidingLog(10, sec)
	runSteps(t, log, step{0, 5, "ok"})
	log.Refund(5)
	runSteps(t, log, step{500 * ms, 8, "ok"}, step{1001 * ms, 3, "refused"}, step{1001 * ms, 2, "ok"})
	log = newSlidingLog(10, sec)
	runSteps(t, log, step{0, 1, "ok"})
	for range 10 {
		runSteps(t, log, step{0, 1, "ok"})
		log.Refund(1)
	}
	runSteps(t, log, step{0, 0, "ok 9/10 reset 1s"})

	// A refund gives back the oldest tokens, so newer ones count for the whole window.
	for _, l := range []limiter.TimedLimiter{newSlidingLog(4, sec), newSlidingWindow(4, sec, 10)} {
		runSteps(t, l, step{0, 2, "ok"}, step{900 * ms, 2, "ok"})
		limiter.Refund(l, 2)
		runSteps(t, l, step{900 * ms, 0, "ok 2/4 reset " + l.TakeAt(start.Add(900*ms), 0).ResetAfter.String()}, step{1200 * ms, 3, "refused"}, step{2000 * ms, 4, "ok"})
	}
}

func TestWindowsLastForDecades(t *testing.T) {
	for _, l := range []limiter.TimedLimiter{newFixedWindow(3, hour), newSlidingWindow(3, hour, 7), newSlidingLog(3, hour), newFixedWindow(3, 36*year), newSlidingLog(3, 36*year)} {
		runSteps(t, l, step{-1 << 63, 1, "ok"}, step{0, 1, "ok"}, step{1<<63 - 1, 3, "ok"}, step{1<<63 - 1, 1, "refused"})
	}
}

func TestWindowsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble begins at a window boundary
		config := limiter.WindowConfig{Limit: 2, Window: sec}
		for name, w := range map[string]limiter.WaitLimiter{"fixed": limiter.NewFixedWindow(config), "log": limiter.NewSlidingLog(config)} {
			l := newCallers(t, w)
			for _, who := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				l.start(t.Context(), who, 1)
			}
			l.all.Wait()
			// scenario 44, with a burst
			require.Equal(t, arrival{"g", 3 * sec, nil}, l.log[6], name)
			time.Sleep(time.Until(l.began.Add(7 * sec)))
			require.NoError(t, limiter.WaitAtMost(t.Context(), w, 1, 0), name)
			time.Sleep(sec)
		}
	})
}

func TestWaitOfAWindowFailsAtOnceIfItWouldTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 2, Window: sec, Buckets: 10})
		l := newCallers(t, w)
		w.Take(2)
		for range 4 {
			l.start(t.Context(), "w", 1)
		}
		require.ErrorIs(t, limiter.WaitAtMost(t.Context(), w, 1, 2*sec), limiter.ErrLimited, "two windows must pass first")
		require.Equal(t, "refused 0/2 retry 3.3s reset 1.1s", resultText(w.Take(1)))
		l.all.Wait()
		require.Equal(t, 2200*ms, l.log[3].at)
	})
}

func TestWindowConfigNamesInvalidFields(t *testing.T) {
	want := "limiter: Limit is 0, must be between 1 and 2147483647\n" +
		"limiter: Window is -1s, must be above 0 and at most 315360h0m0s\n" +
		"limiter: MaxWaiters is -1, must be at least 1 (or 0 for no bound)"
	bad := limiter.WindowConfig{Window: -sec, MaxWaiters: -1}
	require.PanicsWithError(t, want, func() { limiter.NewFixedWindow(bad) })
	require.PanicsWithError(t, want, func() { limiter.NewSlidingLog(bad) })
	require.EqualError(t, bad.Validate(), want)
	require.PanicsWithError(t, want, func() { limiter.NewSlidingWindow(bad) })
	require.EqualError(t, limiter.WindowConfig{Limit: 1, Window: sec, Buckets: -2}.Validate(),
		"limiter: Buckets is -2, must be between 1 and 100000 (or 0 for the default)")
}

func TestWindowsAllocateNothing(t *testing.T) {
	config := limiter.WindowConfig{Limit: 100, Window: sec}
	for _, l := range []limiter.TimedLimiter{limiter.NewFixedWindow(config), limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 100, Window: sec})} {
		require.Zero(t, testing.AllocsPerRun(1000, func() { l.Take(1); l.Take(101); limiter.Refund(l, 1) }))
	}
}

func TestSlidingLogDropsExpiredEntries(t *testing.T) {
	for _, penalise := range []bool{false, true} {
		log := limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 100, Window: sec, CountRefused: penalise}, start)
		offerEvenly(log, 1000, 10*sec)
		before := heapInUse()
		offerEvenly(log, 50_000, 100*sec)
		for i := range 50_000 {
			log.TakeAt(start.Add(100*sec+time.Duration(i)), 1)
		}
		require.Less(t, int64(heapInUse()-before), int64(1<<19), "CountRefused %t", penalise)
		log.Take(0)
	}
}
