package breaker_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// TestEveryCallHasOneOutcomeHoweverTheyInterleave makes calls from eight goroutines while two
// goroutines force, release, open, reset and reconfigure the breaker. No call is lost or counted
// twice, and every change is delivered in order.
func TestEveryCallHasOneOutcomeHoweverTheyInterleave(t *testing.T) {
	lateInAll := int64(0)
	for seed := range uint64(12) {
		watch := &modelWatch{}
		configs := modelConfigs(watch.record)
		if watch.halfOpenTimeout = seed%2 > 0; !watch.halfOpenTimeout {
			configs = configs[:3] // the last one has a HalfOpenTimeout
		}
		b := breaker.New("b", configs[int(seed)%len(configs)])
		c := &modelCallers{breaker: b, calls: 4000}
		const never = breaker.Disabled // in this state calls are not counted
		left, right := modelOverrider(b, configs, never), modelOverrider(b, configs, never)
		weather := func(rnd *rand.Rand) {
			c.fails.Store([]int64{0, 5, 30, 90}[rnd.IntN(4)])
			modelYield(2000)
		}
		c.runAll(seed, func(rnd *rand.Rand) {
			if rnd.IntN(2) == 0 {
				c.callByPermit(rnd)
			} else {
				c.callByRun(rnd)
			}
		}, left, right, weather, modelReader(t, b))

		total, late := b.Totals(), b.StatsNow().Late
		require.Equal(t, int64(8*c.calls), c.made.Load())
		require.Equal(t, c.refused.Load(), total.Refused, "each refusal is counted once")
		require.Equal(t, c.made.Load(), total.Calls()+total.Ignored+total.Refused+late, "one outcome per call")
		missed := late - c.uncounted.Load() // calls of Run that were late
		for o, of := range map[breaker.Outcome]int64{
			breaker.Success: total.Successes, breaker.Failure: total.Failures, breaker.Ignored: total.Ignored,
		} {
			most := c.counted[o].Load() + c.ran[o].Load()
			require.LessOrEqual(t, c.counted[o].Load(), of, "%v: what Record said counted has counted", o)
			require.LessOrEqual(t, of, most, "%v", o)
			missed -= most - of
		}
		require.Zero(t, missed, "what is not among the totals was late")
		lateInAll += late
		watch.check(t, b)
	}
	require.Positive(t, lateInAll)
}

// TestDisabledCountsNothingHoweverCallsInterleave is the same test with an override under which
// results are neither counted nor late.
func TestDisabledCountsNothingHoweverCallsInterleave(t *testing.T) {
	watch := &modelWatch{halfOpenTimeout: true}
	configs := modelConfigs(watch.record)
	b := breaker.New("b", configs[0])
	c := &modelCallers{breaker: b, calls: 5000}
	c.fails.Store(40)
	left, right := modelOverrider(b, configs, breaker.Closed), modelOverrider(b, configs, breaker.Closed)
	c.runAll(7, c.callByPermit, left, right, modelReader(t, b))

	total := b.Totals()
	require.Equal(t, c.counted[breaker.Success].Load(), total.Successes)
	require.Equal(t, c.counted[breaker.Failure].Load(), total.Failures)
	require.Equal(t, c.counted[breaker.Ignored].Load(), total.Ignored)
	require.Equal(t, c.refused.Load(), total.Refused)
	require.GreaterOrEqual(t, c.uncounted.Load(), b.StatsNow().Late)
	watch.check(t, b)
}

// probeConfigs are configs of a breaker that is never closed, with 1 to n probes.
func probeConfigs(n int) (configs []breaker.Config) {
	for probes := 1; probes <= n; probes++ {
		configs = append(configs, breaker.Config{
			Cooldown: breaker.Off, Probes: probes, ProbeTimeout: time.Hour,
			HalfOpenTimeout: 2 * time.Millisecond, MinCalls: 1 + probes%3,
		})
	}
	return configs
}

// probesInFlight counts the probes of each half-open stay.
type probesInFlight struct {
	byStay       sync.Map // *atomic.Int64
	seen, atOnce atomic.Int64
}

// makeCall makes a call that fails or is ignored. A call belongs to a stay if the change to that
// stay was the last one both before and after Allow.
func (c *probesInFlight) makeCall(t *testing.T, b *breaker.Breaker, rnd *rand.Rand, most int64) {
	before, half := b.Stay()
	p, err := b.Allow()
	if err != nil {
		runtime.Gosched()
		return
	}
	if after, _ := b.Stay(); after == before && half {
		n, _ := c.byStay.LoadOrStore(before, new(atomic.Int64))
		if now := n.(*atomic.Int64).Add(1); now > most {
			t.Errorf("%d probes in flight at once", now)
		} else if now > c.atOnce.Load() {
			c.atOnce.Store(now)
		}
		c.seen.Add(1)
		modelDelay(rnd)
		n.(*atomic.Int64).Add(-1)
	}
	o := breaker.Failure
	if rnd.IntN(4) == 0 {
		o = breaker.Ignored
	}
	p.Record(bg(), nil, o)
}

// TestNeverMoreProbesThanSlotsHoweverCallsInterleave uses a breaker that is never closed, so that
// every call that passes is a probe, and counts the probes in flight for each half-open stay. Every
// stay begins with a change, and only HalfOpen lets calls pass here.
func TestNeverMoreProbesThanSlotsHoweverCallsInterleave(t *testing.T) {
	configs := probeConfigs(4)
	for seed := range uint64(3) {
		b := breaker.New("probes", configs[len(configs)-1])
		b.OpenFor(0)
		c := &modelCallers{breaker: b, calls: 3000}
		var probes probesInFlight
		c.runAll(seed, func(rnd *rand.Rand) {
			probes.makeCall(t, b, rnd, int64(len(configs)))
		}, func(rnd *rand.Rand) {
			modelYield(rnd.IntN(300))
			switch rnd.IntN(6) {
			case 0:
				b.Force(breaker.ForcedOpen, "")
			case 1:
				b.OpenFor(time.Duration(rnd.IntN(50)) * time.Microsecond)
			case 2:
				if err := b.Reconfigure(configs[rnd.IntN(len(configs))]); err != nil {
					panic(err)
				}
			default:
				b.Release()
			}
		})
		require.Positive(t, probes.seen.Load())
		require.Greater(t, probes.atOnce.Load(), int64(1), "no two were ever in flight at once: the test shows nothing")
		require.Zero(t, b.Totals().Successes)
	}
}
