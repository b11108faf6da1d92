package main

import (
	"encoding/json"
	"maps"
	"slices"
)

// summary holds the totals of a run.
type summary struct {
	Calls            int64 `json:"calls"`
	Succeeded        int64 `json:"succeeded"`
	Failed           int64 `json:"failed"`
	RefusedOpen      int64 `json:"refused_open"`
	RefusedLimited   int64 `json:"refused_limited"`
	BreakerOpened    int64 `json:"breaker_opened"`
	BreakerClosed    int64 `json:"breaker_closed"`
	AlertsFired      int64 `json:"alerts_fired"`
	AlertsResolved   int64 `json:"alerts_resolved"`
	OTelExports      int64 `json:"otel_exports"`
	PrometheusSeries int64 `json:"prometheus_series"`
}

// newSummary returns a summary of the sales of a shop and of the transitions.
func newSummary(s *shop, seen transitionCounts) summary {
	return summary{
		Calls:          s.customers.Total(),
		Succeeded:      s.sales.succeeded.Load(),
		Failed:         s.sales.failed.Load(),
		RefusedOpen:    s.sales.refusedOpen.Load(),
		RefusedLimited: s.sales.refusedLimited.Load(),
		BreakerOpened:  seen.breakerOpened,
		BreakerClosed:  seen.breakerClosed,
		AlertsFired:    seen.alertsFired,
		AlertsResolved: seen.alertsResolved,
	}
}

// addsUp reports whether the outcomes add up to the calls.
func (s summary) addsUp() bool {
	return s.Calls == s.Succeeded+s.Failed+s.RefusedOpen+s.RefusedLimited
}

// missing returns the names of the totals that are zero.
func (s summary) missing() []string {
	var figures map[string]int64
	if err := json.Unmarshal([]byte(s.String()), &figures); err != nil {
		panic(err) // a struct of integers is always such an object
	}
	maps.DeleteFunc(figures, func(_ string, n int64) bool { return n != 0 })
	return slices.Sorted(maps.Keys(figures))
}

// String returns the summary as one line of JSON.
func (s summary) String() string {
	line, err := json.Marshal(s)
	if err != nil {
		panic(err) // integers can always be encoded
	}
	return string(line)
}
