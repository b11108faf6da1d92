package breaker_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestScenarioA37_SlowSuccesses(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, SlowRate: 0.4, MinCalls: 5, FailureRate: breaker.Off, Window: time.Minute}
	runScript(t, c, "0 ssSS .... closed", "4 S . open")
	c.SlowRate = 0.41
	runScript(t, c, "0 ssSS .... closed", "4 S . closed")
	c.SlowRate = breaker.Off
	runScript(t, c, "0 ssssss ...... closed")
}

func TestScenarioA38_OneOutcomePerCall(t *testing.T) {
	const callers, calls = 8, 12_500
	b := breaker.New("b", breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 50 * time.Microsecond})
	var succeeded, failed, ignored, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for range calls {
				p, err := b.Allow()
				if err != nil {
					refused.Add(1)
					continue
				}
				o := breaker.Outcome(rnd.IntN(3))
				if p.Record(o) {
					[]*atomic.Int64{&succeeded, &failed, &ignored}[o].Add(1)
				}
			}
		})
	}
	wg.Wait()
	total := b.Totals()
	require.Equal(t, window.Totals{
		Successes: succeeded.Load(), Failures: failed.Load(), Ignored: ignored.Load(), Refused: refused.Load(),
		ConsecutiveFailures: total.ConsecutiveFailures,
	}, total)
	require.Equal(t, int64(callers*calls), succeeded.Load()+failed.Load()+ignored.Load()+refused.Load()+b.StatsNow().Late)
}

func TestScenarioA39A41_ChangesAlternateWithTheirCounts(t *testing.T) {
	var mu sync.Mutex
	var told []breaker.Change
	b := breaker.New("b", breaker.Config{MinCalls: 3, Probes: 2, Cooldown: breaker.Off, Recovery: breaker.Off, OnChange: func(c breaker.Change) {
		mu.Lock()
		told = append(told, c)
		mu.Unlock()
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				_ = b.Run(bg(), map[bool]func(context.Context) error{true: fail, false: succeed}[i%3 > 0])
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, told)
	legal := map[breaker.State][]breaker.State{
		breaker.Closed: {breaker.Open}, breaker.Open: {breaker.HalfOpen}, breaker.HalfOpen: {breaker.Open, breaker.Closed},
	}
	from := breaker.Closed
	for i, c := range told {
		if i > 0 && c.Seq() != told[i-1].Seq()+1 { // some were dropped
			from = c.From
		}
		require.Equal(t, from, c.From)
		require.Contains(t, legal[c.From], c.To)
		if c.From == breaker.Closed {
			require.GreaterOrEqual(t, c.Counts.FailureRate(), 0.5)
			require.GreaterOrEqual(t, c.Counts.Calls(), int64(3))
		}
		from = c.To
	}
	require.Equal(t, b.LastSeq(), told[len(told)-1].Seq())
}
