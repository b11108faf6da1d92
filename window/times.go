package window

import (
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// Times counts how long things took, since it was made: a histogram alone, without
// a window or a clock. It takes two kilobytes. The zero value has counted nothing; it
// must not be copied. All methods may be called from any number of goroutines.
type Times struct{ counted tally.Times }

// Record counts a time; one below 0 counts as 0.
func (t *Times) Record(took time.Duration) { t.counted.Record(took) }

// Latency returns what was counted.
func (t *Times) Latency() Latency { return Latency(t.counted.Lifetime()) }
