package alert

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// BurnRate is how many times faster than allowed the error budget of an objective is spent: at
// 1 the budget lasts exactly until the end of the objective's period. slo is the share of calls
// that have to succeed, such as 0.999. Refused calls count as failed ones.
//
// It is the lesser of the burn rates over the long and the short span, so that it
// is high only where the budget has been burning for long enough to matter, and
// still is. The part of a span that the monitor has not seen counts as good traffic
// at the rate of the part that it has. So a service that fails from its first call on is
// noticed soon, and one error among its first calls is not taken for an outage. There is
// no data if either span is without calls.
func BurnRate(of Counted, slo float64, long, short time.Duration) Value {
	v := Value{name: "burn rate over " + brief(long) + " and " + brief(short), counts: true, countsBad: true}
	v.high = 1 / (1 - slo)
	if of == nil {
		v.errs = append(v.errs, errors.New("its source of calls is nil"))
	}
	if math.IsNaN(slo) || slo <= 0 || slo >= 1 {
		v.errs = append(v.errs, fmt.Errorf("its slo is %v, must lie between 0 and 1", slo))
		v.high = math.Inf(1)
	}
	v.errs = append(v.errs, spanFaults(long, short)...)
	if long <= short {
		v.errs = append(v.errs, fmt.Errorf("its spans are %v and %v, the long one must be longer", long, short))
	}
	v.start = func() probe {
		feed := newFeed(of, viewShape(long), viewShape(short))
		return single(v.name, func(t time.Time) measurement {
			feed.sample(t)
			return burn(feed.views[0], feed.views[1], slo, t)
		})
	}
	return v
}

func burn(long, short *window.View, slo float64, t time.Time) measurement {
	s := measurement{Value: math.Inf(1), OK: true}
	for _, view := range []*window.View{short, long} {
		c := view.CountsAt(t)
		s.Calls, s.Bad = offered(c), c.Failures+c.Refused
		if s.Calls == 0 {
			return measurement{}
		}
		rate := view.CoverageAt(t) * float64(s.Bad) / float64(s.Calls)
		s.Value = min(s.Value, rate/(1-slo))
	}
	return s
}

// BurnRateRules returns the two rules that page for an objective, after chapter 5 of the Site
// Reliability Workbook: 2 % of a month's budget spent within an hour (14.4 times too
// fast over 1 h and over 5 m), and 5 % within six hours (6 times, over 6 h and 30 m).
// Their names are the given one with " burn 14.4x" and " burn 6x", their severity is
// "page". An objective so low that a factor could never be reached is refused by
// Validate.
func BurnRateRules(name string, of Counted, slo float64) []Rule {
	return []Rule{
		page(name, 14.4, BurnRate(of, slo, time.Hour, 5*time.Minute)),
		page(name, 6, BurnRate(of, slo, 6*time.Hour, 30*time.Minute)),
	}
}

func page(name string, factor float64, burn Value) Rule {
	return Rule{Name: fmt.Sprintf("%s burn %gx", name, factor), Value: burn, When: Above(factor), Severity: "page"}
}
