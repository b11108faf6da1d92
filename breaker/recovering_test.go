package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// recoveryRun is a breaker whose calls are made at given times.
type recoveryRun struct {
	*breaker.Breaker
	t    *testing.T
	now  time.Duration
	told recorder
}

// newRecoveryRun returns a breaker with a Recovery of 20s that has just begun to recover.
func newRecoveryRun(t *testing.T, c breaker.Config) *recoveryRun {
	t.Helper()
	c.Cooldown, c.Probes = time.Second, 1
	r := &recoveryRun{t: t, now: time.Second}
	r.Breaker = breaker.NewAt("b", r.told.attachTo(c), t0)
	r.OpenForAt(t0, time.Second)
	require.True(t, r.makeCall(breaker.Success), "the probe")
	require.Equal(t, breaker.Recovering, r.state())
	return r
}

func (r *recoveryRun) state() breaker.State { return r.StateAt(after(r.now)) }

// makeCall makes a call and reports whether it passed.
func (r *recoveryRun) makeCall(o breaker.Outcome) bool {
	p, err := r.AllowAt(after(r.now))
	if err != nil {
		require.ErrorIs(r.t, err, breaker.ErrOpen)
		return false
	}
	require.True(r.t, p.RecordAt(after(r.now), o))
	return true
}

// makeCalls makes n calls, one each millisecond, and returns how many passed.
func (r *recoveryRun) makeCalls(n int, o breaker.Outcome) (passed int) {
	for range n {
		r.now += time.Millisecond
		if r.makeCall(o) {
			passed++
		}
	}
	return passed
}

// A round needs one result. When all calls pass, the breaker closes at the first call after
// Recovery without a failed round.
func TestRecoveringDoublesTheShareWithEachGoodRound(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	require.Equal(t, 1, r.makeCalls(1, breaker.Success), "one of eight begins with a call that passes")
	require.Equal(t, 1, r.makeCalls(4, breaker.Success), "one of four")
	require.Equal(t, 1, r.makeCalls(2, breaker.Success), "one of two")
	require.Equal(t, 1000, r.makeCalls(1000, breaker.Success), "all")
	require.True(t, r.Tripped())
	r.now = time.Second + 20*time.Second - 2*time.Millisecond
	require.Equal(t, 1, r.makeCalls(1, breaker.Success))
	require.Equal(t, breaker.Recovering, r.state(), "a millisecond is missing")
	require.Equal(t, 1, r.makeCalls(1, breaker.Success))
	require.Equal(t, breaker.Closed, r.state())
	require.False(t, r.Tripped())
	last := r.told.all[len(r.told.all)-1]
	require.Equal(t, "all calls pass and no round of them failed for 20s", last.Reason)
	require.EqualValues(t, 1, last.Counts.Successes, "the call before it, in the window")
}

func TestRecoveringHalvesTheShareWithEachFailedRound(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	r.makeCalls(1+4+2, breaker.Success)
	require.Equal(t, 12, r.makeCalls(12, breaker.Failure), "a run: ten, and one per six calls")
	require.Equal(t, 1, r.makeCalls(2, breaker.Failure), "one of two")
	require.Equal(t, 1, r.makeCalls(4, breaker.Failure), "one of four")
	require.Equal(t, 100, r.makeCalls(800, breaker.Failure), "one of eight, however many fail")
	require.Equal(t, breaker.Recovering, r.state())
	require.Equal(t, 1, r.makeCalls(8, breaker.Success), "it recovers from there")
	require.Equal(t, 1, r.makeCalls(4, breaker.Success), "one of four")
	require.Equal(t, 5, r.makeCalls(2+4, breaker.Success), "one of two, and then all")
}

func TestRecoveringOpensAfterFailuresAloneForRecovery(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{Recovery: 5 * time.Second})
	passed := r.makeCalls(4999, breaker.Failure)
	require.Equal(t, breaker.Recovering, r.state())
	require.InDelta(t, 4999/8, passed, 1)
	r.makeCalls(24, breaker.Failure)
	require.Equal(t, breaker.Open, r.state())
	last := r.told.all[len(r.told.all)-1]
	require.Equal(t, "all rounds of calls failed for 5s: 1 of the last 1 failed", last.Reason)
	require.Equal(t, breaker.Recovering, last.From)
}

// docs/breaker.md promises this bound.
func TestRecoveringLetsAtMostOneOfEightThroughWhileCallsFail(t *testing.T) {
	for _, every := range []time.Duration{time.Microsecond, 10 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		r := newRecoveryRun(t, breaker.Config{Recovery: time.Hour})
		begin := r.now
		for n := 1; n <= 1000; n++ {
			r.now += every
			r.makeCall(breaker.Failure)
			seconds := int64((r.now - begin) / time.Second)
			require.LessOrEqual(t, r.Totals().Failures, int64(n+7)/8+seconds, "%d calls, one per %v", n, every)
		}
		require.Equal(t, breaker.Recovering, r.state())
	}
}

func TestRecoveringLetsACallPerSecondThrough(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	require.True(t, r.makeCall(breaker.Failure))
	for range 5 {
		require.False(t, r.makeCall(breaker.Failure))
		r.now += time.Second - 1
		require.False(t, r.makeCall(breaker.Failure))
		r.now++
		require.True(t, r.makeCall(breaker.Failure))
	}
}

func TestRecoveringJudgesOnlyCallsOfTheRound(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	late, err := r.AllowAt(after(r.now)) // of the first round
	require.NoError(t, err)
	require.Equal(t, 2, r.makeCalls(16, breaker.Success), "two of three decide, whatever the first becomes")
	require.True(t, late.RecordAt(after(r.now), breaker.Failure), "it counts")
	require.EqualValues(t, 1, r.CountsAt(after(r.now)).Failures)
	require.Equal(t, 1, r.makeCalls(4, breaker.Success), "one of four")
	require.Equal(t, 5, r.makeCalls(2+4, breaker.Success), "one of two, and then all")
}

// A service may take longer than ProbeTimeout: a missing result is not a failure.
func TestRecoveringTakesNoMissingResultForAFailure(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{ProbeTimeout: 3 * time.Second})
	require.Equal(t, 1, r.beginCalls(8))
	r.now += 3*time.Second - 8*time.Millisecond
	require.Equal(t, 1, r.beginCalls(4), "the pause was long, and the share is still one of eight")
	require.Equal(t, 1, r.beginCalls(4), "one of four, from the first call of the round on for 3s")
	r.now += 3 * time.Second
	require.Equal(t, 1, r.beginCalls(2), "one of two")
	r.now += 3 * time.Second
	require.Equal(t, 100, r.beginCalls(100), "all")
	r.now = time.Second + 20*time.Second
	r.beginCalls(1)
	require.Equal(t, breaker.Closed, r.state())
}

// beginCalls begins n calls that do not end, one each millisecond, and returns how many passed.
func (r *recoveryRun) beginCalls(n int) (passed int) {
	for range n {
		r.now += time.Millisecond
		if _, err := r.AllowAt(after(r.now)); err == nil {
			passed++
		}
	}
	return passed
}

// Errors that come at once come before the successes of calls that began earlier.
func TestRecoveringJudgesACallAmongThoseThatBeganBefore(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	begin := func() *breaker.Permit {
		for {
			r.now += time.Millisecond
			if p, err := r.AllowAt(after(r.now)); err == nil {
				return &p
			}
		}
	}
	slow := []*breaker.Permit{begin(), begin(), begin()}
	require.True(t, begin().RecordAt(after(r.now), breaker.Failure))
	require.True(t, begin().RecordAt(after(r.now), breaker.Failure))
	for _, p := range slow[:2] {
		require.True(t, p.RecordAt(after(r.now), breaker.Success))
		require.Equal(t, 1, r.beginCalls(8), "one of eight: the last slow call decides")
	}
	require.True(t, slow[2].RecordAt(after(r.now), breaker.Success))
	require.Equal(t, 1, r.beginCalls(4), "one of four")
}

// 45 % of the calls fail. A few calls reach FailureRate by chance, but all of them do not.
func TestRecoveringIsAsSureAsTheTrafficAllows(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	random := rand.New(rand.NewPCG(1, 2))
	for r.state() == breaker.Recovering && r.now < 5*time.Minute {
		o := breaker.Success
		if random.Float64() < 0.45 {
			o = breaker.Failure
		}
		r.makeCalls(1, o)
	}
	require.Equal(t, breaker.Closed, r.state())
	require.Less(t, r.now, time.Minute)
}

func TestRefusalOfARecoveringBreaker(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	r.makeCall(breaker.Success)
	_, err := r.AllowAt(after(r.now))
	var refusal *breaker.OpenError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, breaker.Recovering, refusal.State)
	require.Zero(t, refusal.Until)
	require.InDelta(t, 1.5, refusal.RetryAfter().Seconds(), 0.5)
	require.EqualError(t, err, `breaker "b" is recovering and refuses a share of the calls (opened by OpenFor for 1s)`)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.AllowAt(after(r.now)) }))
}

func TestRecoveryCanBeSwitchedOff(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, Probes: 1}
	b := breaker.NewAt("b", c, t0)
	b.OpenForAt(t0, time.Second)
	p, err := b.AllowAt(after(5 * time.Second))
	require.NoError(t, err)
	require.True(t, p.RecordAt(after(5*time.Second), breaker.Success))
	require.Equal(t, breaker.Closed, b.StateAt(after(5*time.Second)))

	require.ErrorContains(t, breaker.Config{Recovery: -2}.Validate(), "Recovery is -2ns, must not be negative, or Off")
	require.ErrorContains(t, breaker.Config{Force: breaker.Recovering}.Validate(), "Force")
}

func TestRecoveringUnderOverridesAndReconfigure(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	r.makeCalls(1+4+2, breaker.Success)
	r.ForceAt(after(r.now), breaker.ForcedOpen, "")
	require.Zero(t, r.makeCalls(8, breaker.Success))
	r.ReleaseAt(after(r.now))
	require.Equal(t, breaker.Recovering, r.state())
	require.Equal(t, 1, r.makeCalls(4, breaker.Success), "it starts again")
	require.NoError(t, r.ReconfigureAt(after(r.now), breaker.Config{Recovery: breaker.Off}))
	require.Equal(t, breaker.Closed, r.state())
}

// A share that passes is a round per call, whatever MinCalls is.
func TestRecoveringDoesNotTakeLongIfCallsAreRare(t *testing.T) {
	r := newRecoveryRun(t, breaker.Config{})
	for r.state() == breaker.Recovering {
		r.now += 15 * time.Second
		require.True(t, r.makeCall(breaker.Success))
	}
	require.Equal(t, breaker.Closed, r.state())
	require.Equal(t, time.Second+4*15*time.Second, r.now, "three rounds, and the first call after them")
}
