package alert

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// transitionStates are the states that the metrics of breakers and monitors name.
var transitionStates = []string{
	"closed", "open", "half_open", "recovering", "forced_open", "forced_closed", "disabled", "shadow", "pending", "firing", "inactive",
}

// Transitions is how often a breaker, or all breakers of a gate or a group together, entered a
// state in the last span. It is read from the metrics that the source exports. For a [Monitor],
// Transitions is how often alerts became pending, firing or inactive.
//
// A flapping breaker is one that closes again and again. In a long outage a breaker does not close,
// however often it probes the service and opens again. So count the state "closed":
//
//	alert.Rule{
//		Name:  "payments flaps",
//		Value: alert.Transitions(payments, "closed", 15*time.Minute),
//		When:  alert.Above(2),
//	}
//
// For one alert per member of a group, use [Each] with the members. Until the monitor has run for a
// whole span the number is too low, so a Below condition has no data until then.
func Transitions(of stat.Source, state string, span time.Duration) Value {
	v := counted(fmt.Sprintf("number of transitions to %s over %s", state, shortText(span)), of, span, func(s *stat.Series) bool {
		at := slices.Index(s.Instrument.Attrs, transitionAttribute[s.Instrument.Name])
		return at >= 0 && at < len(s.Values) && s.Values[at] == state
	})
	if !slices.Contains(transitionStates, state) {
		v.errs = append(v.errs, fmt.Errorf("the state is %.60q, must be one of %q", state, transitionStates))
	}
	return v
}

// transitionAttribute is the attribute with the state, by the name of the instrument.
var transitionAttribute = map[string]string{
	instrument.BreakerTransitions.Name: "weir.breaker.state",
	instrument.AlertTransitions.Name:   "weir.alert.state",
}
