package fleet

import (
	"fmt"

	"github.com/weir-go/weir/limiter"
)

// Result is what a limiter of a fleet answers: that of any limiter, and who decided.
type Result struct {
	limiter.Result
	From From // who decided
}

// From says who decided.
type From uint8

// Who decides.
const (
	FromServer    From = iota // Redis
	FromDenyCache             // this process, which remembers a refusal of Redis that still holds
	FromLease                 // this process, of permits that it took from Redis before
	FromAway                  // the policy for when Redis is away: see [Away]
)

func (f From) String() string {
	switch f {
	case FromServer:
		return "server"
	case FromDenyCache:
		return "deny cache"
	case FromLease:
		return "lease"
	case FromAway:
		return "away"
	}
	return fmt.Sprintf("from %d", uint8(f))
}
