package fleet_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// BenchmarkTake measures a decision with 1, 8 and 64 callers, each with its own key, on one
// redis-server. Module bench compares it with other libraries.
func BenchmarkTake(b *testing.B) {
	l := connect(b)
	const plenty = 1_000_000
	bucket := fleet.TokenBucket{Rate: limiter.PerSecond(plenty), Burst: plenty}
	none := newLimiter(l, "none", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour)}, fleet.Config{OnOutage: fleet.FailError})
	_, err := none.Take(b.Context(), "k", 1)
	require.NoError(b, err)
	for _, test := range []struct {
		name string
		take func(ctx context.Context, key string, n int) (fleet.Result, error)
	}{
		{"TokenBucket", newLimiter(l, "plain", bucket, fleet.Config{OnOutage: fleet.FailError}).Take},
		{"leased", newLimiter(l, "leased", bucket, fleet.Config{OnOutage: fleet.FailError, MaxLease: 100}).Take},
		{"refused", func(ctx context.Context, _ string, n int) (fleet.Result, error) { return none.Take(ctx, "k", n) }},
	} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", test.name, callers), func(b *testing.B) { benchmarkTake(b, callers, test.take) })
		}
	}
}

func benchmarkTake(b *testing.B, callers int, take func(context.Context, string, int) (fleet.Result, error)) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var g sync.WaitGroup
	for i := range callers {
		key := "user " + strconv.Itoa(i)
		g.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := take(b.Context(), key, 1); err != nil {
					b.Error(err)
				}
			}
		})
	}
	g.Wait()
}
