package ring_test

import (
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/ring"
)

// TestReadsWhileTheRingGrows reads rows while others are added, until the ring is full and rows are
// overwritten. Each bucket begins with its own number as total.
func TestReadsWhileTheRingGrows(t *testing.T) {
	const reach, buckets = 7, 20
	for range 30_000 {
		r := ring.New(1, reach, 1)
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for newest := r.Newest(); newest < buckets; newest = r.Newest() {
					for b := max(newest-reach, 0); b <= newest; b++ {
						if got := r.Row(b)[0].Load(); got != b && r.Newest() == newest {
							t.Errorf("row of bucket %d = %d while the newest is %d", b, got, newest)
							return
						}
					}
				}
			})
		}
		for b := int64(1); b <= buckets; b++ {
			r.Advance(b, []int64{b})
		}
		readers.Wait()
	}
}
