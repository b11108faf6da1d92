package latency_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
)

// A sparse histogram has the same snapshots as another.
func TestASparseHistogramCountsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var sparse latency.Sparse
	var all latency.Histogram
	require.Equal(t, all.Snapshot(), sparse.Snapshot())
	for range 5000 {
		d := time.Duration(math.Exp(r.Float64() * math.Log(math.MaxInt64)))
		if r.IntN(100) == 0 {
			d = -d
		}
		sparse.Record(d)
		all.Record(d)
	}
	require.Equal(t, all.Snapshot(), sparse.Snapshot())
}
