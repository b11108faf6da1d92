package alert

import (
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// Refusals is the number of calls in the last span that were refused by a breaker, a limiter or a
// throttle, by a gate's breaker and its limiter together, or by all members of a group. It is read
// from the metrics that the source exports. Calls that wait and are then allowed are not refused.
// The gates of a weir.Group share the refusal counts of their limiters, so pass the group to
// Refusals and not its gates.
//
// Until the monitor has run for a whole span the number is too low, so a Below condition has no
// data until then.
func Refusals(of stat.Source, span time.Duration) Value {
	return counted("number of refused calls over "+shortText(span), of, span, isRefusals)
}

// isRefusals reports whether a series counts refused calls.
func isRefusals(s *stat.Series) bool {
	return refusalInstruments[s.Instrument.Name] && len(s.Values) > 1 && s.Values[1] == "refused"
}

// refusalInstruments count calls by their outcome, which is the second attribute.
var refusalInstruments = map[string]bool{
	instrument.BreakerCalls.Name: true, instrument.LimiterRequests.Name: true, instrument.WindowEvents.Name: true,
}
