package alert

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// BurnRate is the speed at which the error budget of an objective is spent, as a multiple of the
// allowed speed. At 1 the budget lasts exactly until the end of the objective's period. slo is the
// share of calls that have to succeed, such as 0.999. Refused calls count as failed.
//
// The value is the lower of the burn rates over the long and the short span. It is therefore high
// only if the budget has burned for long enough to matter and still burns. If a span begins before
// the first evaluation, BurnRate assumes that the calls before that evaluation succeeded, and that
// there were as many per second as after it. So a service that fails from its first call on is
// noticed soon, and a single error among its first calls is not taken for an outage. There is no
// data if either span has no calls.
func BurnRate(of Counted, slo float64, long, short time.Duration) Value {
	v := Value{name: "burn rate over " + shortText(long) + " and " + shortText(short), counts: true, countsBad: true}
	v.high = 1 / (1 - slo)
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	if math.IsNaN(slo) || slo <= 0 || slo >= 1 {
		v.errs = append(v.errs, fmt.Errorf("slo is %v, must lie between 0 and 1", slo))
		v.high = math.Inf(1)
	}
	v.errs = append(v.errs, spanErrors(long, short)...)
	if long <= short {
		v.errs = append(v.errs, fmt.Errorf("the spans are %v and %v, the first must be longer", long, short))
	}
	v.id = newValueID(v.name, of, slo)
	v.start = func() sampler {
		views := newViews(of, short, long)
		return sampleOne(v.name, func(t time.Time) measurement { return lowestBurnRate(views.sample(t), slo, t) })
	}
	return v
}

// lowestBurnRate returns the lowest burn rate of the views, with the counts of the last view.
func lowestBurnRate(views []view, slo float64, t time.Time) measurement {
	m := measurement{Value: math.Inf(1), OK: true}
	for _, v := range views {
		c := v.CountsAt(t)
		m.Calls, m.Bad = withRefused(c), c.Failures+c.Refused
		if m.Calls == 0 {
			return measurement{why: noCalls}
		}
		failureRate := v.coverage(t) * float64(m.Bad) / float64(m.Calls)
		m.Value = min(m.Value, failureRate/(1-slo))
	}
	return m
}

// BurnRateRules returns the two rules of chapter 5 of the Site Reliability Workbook that page for
// an objective:
//
//   - name + " burn 14.4x" fires when 2 % of a month's error budget is spent within an hour: 14.4
//     times too fast over 1h and over 5m.
//   - name + " burn 6x" fires when 5 % of that budget is spent within six hours: 6 times too fast
//     over 6h and over 30m.
//
// Their severity is "page". Validate returns an error if slo is so low that a burn rate of 14.4 or
// 6 cannot occur.
func BurnRateRules(name string, of Counted, slo float64) []Rule {
	return []Rule{
		burnRateRule(name, 14.4, BurnRate(of, slo, time.Hour, 5*time.Minute)),
		burnRateRule(name, 6, BurnRate(of, slo, 6*time.Hour, 30*time.Minute)),
	}
}

func burnRateRule(name string, factor float64, burn Value) Rule {
	return Rule{Name: fmt.Sprintf("%s burn %gx", name, factor), Value: burn, When: Above(factor), Severity: "page"}
}
