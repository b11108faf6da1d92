package breaker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// traceOf returns the IDs that a test has put into the context.
func traceOf(ctx context.Context) (trace, span string) {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		return id, "span of " + id
	}
	return "", ""
}

func contextWithTrace(id string) context.Context { return context.WithValue(bg(), traceKey{}, id) }

func exemplarsOf(s stat.HistogramSource) (list []stat.Exemplar) {
	for _, h := range s.Histograms {
		list = append(list, h.Exemplars...)
	}
	return list
}

// callTaking returns a call that takes d.
func callTaking(d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(d)
		return nil
	}
}

func TestCallsWithATraceAreExemplars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Latency: true, Trace: traceOf})
		require.NoError(t, b.Run(bg(), callTaking(10*time.Millisecond)))
		require.NoError(t, b.Run(contextWithTrace(strings.Repeat("x", 65)), callTaking(10*time.Millisecond)))
		permit, err := b.Allow()
		require.NoError(t, err)
		permit.Record(bg(), nil, breaker.Success)
		require.Empty(t, exemplarsOf(b), "no trace, an ID that is too long, no context")

		require.NoError(t, b.Run(contextWithTrace("slow"), callTaking(time.Second)))
		slow := time.Now()
		require.Error(t, b.Run(contextWithTrace("quick"), func(ctx context.Context) error {
			time.Sleep(10 * time.Millisecond)
			return fail(ctx)
		}))
		quick := time.Now()
		permit, err = b.Allow()
		require.NoError(t, err)
		permit.Record(contextWithTrace("ignored"), nil, breaker.Ignored)
		want := []stat.Exemplar{
			{Value: 0.01, Time: quick, TraceID: "quick", SpanID: "span of quick"}, {Value: 1, Time: slow, TraceID: "slow", SpanID: "span of slow"},
		}
		require.Equal(t, want, exemplarsOf(b))
	})
}

func TestAnExemplarIsReplacedAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := breaker.New("b", breaker.Config{Latency: true, Trace: func(ctx context.Context) (trace, span string) {
			asked++
			return traceOf(ctx)
		}})
		for range 50 {
			require.NoError(t, b.Run(bg(), callTaking(time.Millisecond)))
		}
		require.Equal(t, 5, asked, "once in 10 ms")
		time.Sleep(10 * time.Millisecond)
		for i := range 1900 {
			require.NoError(t, b.Run(contextWithTrace(fmt.Sprint(i)), callTaking(time.Millisecond)))
		}
		list := exemplarsOf(b)
		require.Len(t, list, 1)
		require.Equal(t, "1000", list[0].TraceID)
		require.Equal(t, 7, asked)
	})
}

func TestATraceThatPanicsIsNoExemplar(t *testing.T) {
	b := breaker.New("b", breaker.Config{Latency: true, Trace: func(context.Context) (string, string) { panic("a bug") }})
	require.NoError(t, b.Run(bg(), succeed))
	require.Empty(t, exemplarsOf(b))
	require.EqualValues(t, 1, b.Totals().Successes)
}

func TestKeysWithSeriesAndProbesHaveExemplars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{
			MaxKeys: 4, MaxSeries: 1, Breaker: breaker.Config{Latency: true, Trace: traceOf, ConsecutiveFailures: 1, Cooldown: time.Second},
		})
		require.Error(t, g.Get("a").Run(contextWithTrace("failed"), fail))
		require.NoError(t, g.Get("b").Run(contextWithTrace("other"), succeed))
		_ = exemplarsOf(g) // gives a series to the first key
		time.Sleep(2 * time.Second)
		require.NoError(t, g.Get("a").Run(contextWithTrace("probe"), callTaking(time.Second)))
		var ids []string
		for _, e := range exemplarsOf(g) {
			ids = append(ids, e.TraceID)
		}
		require.Equal(t, []string{"failed", "probe"}, ids)
	})
}

// TestExemplarsAreBounded makes calls of all durations from many goroutines.
func TestExemplarsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Latency: true, Trace: traceOf})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 80 {
					_ = b.Run(contextWithTrace(fmt.Sprint(i, n)), callTaking(time.Microsecond<<(n%40)))
					_ = exemplarsOf(b)
				}
			})
		}
		all.Wait()
		list, bounds := exemplarsOf(b), instrument.BreakerCallDuration.Bounds
		require.Len(t, list, len(bounds)+1)
		for i, e := range list {
			if i > 0 {
				require.Greater(t, e.Value, bounds[i-1])
			}
			if i < len(bounds) {
				require.LessOrEqual(t, e.Value, bounds[i])
			}
		}
	})
}
