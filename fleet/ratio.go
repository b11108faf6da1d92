package fleet

import (
	"time"

	"github.com/weir-go/weir/limiter"
)

// pace is a finite, valid rate: so many events in so much time.
func ratePerDuration(r limiter.Rate) (events float64, per time.Duration) {
	whole, per := r.Ratio()
	return float64(whole), per
}
