package recipes

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

//readme:longcalls

// Search guards a service that has short and long calls.
type Search struct{ Lookups, Reports *weir.Gate }

// NewSearch returns gates with different numbers for the two kinds of calls.
func NewSearch() Search {
	return Search{
		Lookups: weir.New("search lookups", weir.Config{
			MaxConcurrent: 50,
			Breaker:       breaker.Config{SlowCall: 200 * time.Millisecond},
		}),
		Reports: weir.New("search reports", weir.Config{
			MaxConcurrent: 5,
			MaxWait:       time.Minute,
			Breaker:       breaker.Config{SlowCall: time.Minute, ProbeTimeout: 2 * time.Minute},
		}),
	}
}

//readme:end
