package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/limiter"
)

// limits are the limits of an object. Limits that the object does not have are 0.
type limits struct {
	rate          limiter.Rate
	burst         int // as configured: 0 is the default
	maxConcurrent int
	quota         int // requests per window
	k, maxRefusal float64
}

// limitsProperty returns the limits of an object.
func limitsProperty(o *adminhook.Object) property[limits] {
	return property[limits]{
		what: "limits",
		now:  func() limits { return limitsOf(o) },
		set: func(l limits, _ string) { // they were valid before
			if o.Limits != nil {
				o.Limits.Set(l.rate, l.burst)
			}
			if o.Slots != nil && o.Slots.Set != nil {
				_ = o.Slots.Set(l.maxConcurrent)
			}
			if o.Quota != nil {
				o.Quota.Set(l.quota)
			}
			if o.Throttle != nil {
				o.Throttle.Set(l.k, l.maxRefusal)
			}
		},
		text: limits.String,
	}
}

func limitsOf(o *adminhook.Object) (l limits) {
	if o.Limits != nil {
		rate, burst := o.Limits.Get()
		l.rate, _ = rate.(limiter.Rate)
		l.burst = burst
	}
	if o.Slots != nil {
		l.maxConcurrent = o.Slots.Get()
	}
	if o.Quota != nil {
		l.quota = o.Quota.Get()
	}
	if o.Throttle != nil {
		l.k, l.maxRefusal = o.Throttle.Get()
	}
	return l
}

// limitFields returns the fields of the action limits that an object has.
func limitFields(o *adminhook.Object) (names []string) {
	if o.Limits != nil {
		names = append(names, "rate", "burst")
	}
	if o.Slots != nil && o.Slots.Set != nil {
		names = append(names, "max_concurrent")
	}
	if o.Quota != nil {
		names = append(names, "limit")
	}
	if o.Throttle != nil {
		names = append(names, "k", "max_refusal")
	}
	return names
}

// givenLimits returns the fields of the action limits that a body has.
func (v *values) givenLimits() (names []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"rate", v.rate != nil},
		{"burst", v.burst != nil},
		{"max_concurrent", v.maxConcurrent != nil},
		{"limit", v.limit != nil},
		{"k", v.k != nil},
		{"max_refusal", v.maxRefusal != nil},
	} {
		if f.given {
			names = append(names, f.name)
		}
	}
	return names
}

// changeLimits changes the limits that the request names.
func (t *target) changeLimits(h *Handler, o *adminhook.Object, r *request, e *entry, why string) error {
	v, has := &r.body, limitFields(o)
	given := v.givenLimits()
	if len(given) == 0 {
		return replyErrorf(http.StatusBadRequest, "the body has none of %s", strings.Join(has, ", "))
	}
	for _, name := range given {
		if !slices.Contains(has, name) {
			return replyErrorf(http.StatusConflict, "the %s %.64q has no %s that can be changed, only %s", o.Kind, o.Name, name, strings.Join(has, ", "))
		}
	}
	a := limitsProperty(o)
	next := a.now()
	e.Before = next.String()
	next.rate, next.burst = *firstNonNil(v.rate, &next.rate), *firstNonNil(v.burst, &next.burst)
	next.maxConcurrent, next.quota = *firstNonNil(v.maxConcurrent, &next.maxConcurrent), *firstNonNil(v.limit, &next.quota)
	next.k, next.maxRefusal = *firstNonNil(v.k, &next.k), *firstNonNil(v.maxRefusal, &next.maxRefusal)
	if err := next.check(o, v); err != nil {
		return replyErrorf(http.StatusBadRequest, "%v", err)
	}
	t.limits.begin(h, t, a, next, why, v.duration)
	e.After = a.now().String()
	return nil
}

// check returns the error of the limits that the body has changed.
func (l *limits) check(o *adminhook.Object, v *values) error {
	switch {
	case v.maxConcurrent != nil:
		if err := (inflight.Config{Limit: l.maxConcurrent}).Validate(); err != nil {
			return err
		}
	case v.limit != nil:
		return o.Quota.Check(l.quota)
	case v.k != nil || v.maxRefusal != nil:
		return o.Throttle.Check(l.k, l.maxRefusal)
	}
	if v.rate == nil && v.burst == nil {
		return nil
	}
	if err := (limiter.TokenBucketConfig{Rate: l.rate, Burst: l.burst}).Validate(); err != nil || o.Limits.Check == nil {
		return err
	}
	return o.Limits.Check(l.rate, l.burst)
}

// String returns the limits as text, such as "100/s, burst 20".
func (l limits) String() string {
	var parts []string
	if l.rate != (limiter.Rate{}) {
		parts = append(parts, l.rate.String())
	}
	if l.burst != 0 {
		parts = append(parts, "burst "+strconv.Itoa(l.burst))
	}
	if l.maxConcurrent != 0 {
		parts = append(parts, fmt.Sprintf("%d in flight", l.maxConcurrent))
	}
	if l.quota != 0 {
		parts = append(parts, fmt.Sprintf("%d per window", l.quota))
	}
	if l.k != 0 {
		parts = append(parts, fmt.Sprintf("K %v, at most %v refused", l.k, l.maxRefusal))
	}
	return strings.Join(parts, ", ")
}

func firstNonNil[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
