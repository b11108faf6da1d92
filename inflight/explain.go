package inflight

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/instrument"
)

// explanations say what the evidence is.
var explanations = [...]string{
	slowCalls:    "most calls take longer than half of the time that callers allow",
	words:        "the service says that it is overloaded",
	lateFailures: "calls fail because they take as long as their callers allow",
	silence:      "no call succeeds",
}

// Explain returns in words why and since when an adaptive limit bounds the calls. It returns "" if
// the limit is fixed, or if nothing is refused.
func (l *Limiter) Explain() string {
	b := l.bound()
	if b.Evidence == 0 {
		return ""
	}
	return fmt.Sprintf("at most %d calls in flight for %v: %s", b.Limit, b.Bounding.Round(time.Millisecond), explanations[b.Evidence])
}

// bound returns the state of the limiter.
func (l *Limiter) bound() instrument.Bound {
	b := instrument.Bound{Calls: l.InFlight(), Limit: l.Limit()}
	if a := l.adaptive.Load(); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := time.Since(a.epoch)
		if a.restartIfNew(now); a.adaptation.bounding {
			b.Evidence, b.Bounding = int(a.adaptation.reason), now-a.adaptation.since
		}
	}
	return b
}
