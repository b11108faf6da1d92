package ring_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/ring"
)

func TestBucketRoundsDownOnBothSidesOfZero(t *testing.T) {
	r := ring.New(10, 3, 1)
	for _, c := range []struct{ offset, want int64 }{
		{0, 0},
		{9, 0},
		{10, 1},
		{-1, -1},
		{-10, -1},
		{-11, -2},
		{math.MaxInt64, math.MaxInt64 / 10},
		{math.MinInt64, math.MinInt64/10 - 1},
	} {
		require.Equal(t, c.want, r.Bucket(c.offset), "Bucket(%d)", c.offset)
	}
}

func TestEndDoesNotOverflow(t *testing.T) {
	r := ring.New(10, 3, 1)
	require.Equal(t, int64(10), r.End(0))
	require.Equal(t, int64(math.MaxInt64), r.End(r.Bucket(math.MaxInt64)))
}

func TestDueOnceTheNewestBucketHasEnded(t *testing.T) {
	r := ring.New(10, 3, 1)
	require.False(t, r.Due(9))
	require.True(t, r.Due(10))
	r.Advance(7, []int64{1})
	require.False(t, r.Due(79))
	require.True(t, r.Due(80))
}

// FuzzRows compares the rows with a map of the totals with which each bucket began.
func FuzzRows(f *testing.F) {
	f.Add(uint8(3), []byte{1, 1, 2, 9, 0, 255, 1})
	f.Add(uint8(0), []byte{200, 1, 1, 1})
	f.Fuzz(func(t *testing.T, reach uint8, steps []byte) {
		r := ring.New(1, int(reach), 2)
		began := map[int64][2]int64{}
		var newest int64
		for i, step := range steps {
			row := [2]int64{int64(i) + 1, -int64(i)}
			to := newest + int64(step) - 3 // sometimes not forward
			r.Advance(to, row[:])
			for b := newest + 1; b <= to; b++ {
				began[b] = row
			}
			newest = max(newest, to)
			require.Equal(t, newest, r.Newest())
			for b := newest - int64(reach); b <= newest; b++ {
				cells := r.Row(b)
				got := [2]int64{cells[0].Load(), cells[1].Load()}
				require.Equal(t, began[b], got, "row of bucket %d, newest %d", b, newest)
			}
		}
	})
}
