package admin

import (
	"fmt"
	"maps"
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

// The parts of limits that are set separately.
const (
	partRate     = "rate"
	partSlots    = "slots"
	partQuota    = "quota"
	partThrottle = "throttle"
)

// limitParts returns the settings of the limits of an object by their parts.
func limitParts(o *adminhook.Object) map[string]*adminhook.Setting {
	parts := map[string]*adminhook.Setting{partRate: o.Limits, partQuota: o.Quota, partThrottle: o.Throttle}
	if o.Slots != nil {
		parts[partSlots] = o.Slots.Limit
	}
	maps.DeleteFunc(parts, func(_ string, s *adminhook.Setting) bool { return s == nil })
	return parts
}

// limitsOf returns the limits of an object.
func limitsOf(o *adminhook.Object) limits {
	values := map[string]any{}
	for part, s := range limitParts(o) {
		values[part] = s.Get().V
	}
	return limitsFrom(values)
}

// limitsFrom returns the limits with the values of some parts.
func limitsFrom(values map[string]any) (l limits) {
	if v, ok := values[partRate].(adminhook.Limits); ok {
		l.rate, _ = v.Rate.(limiter.Rate)
		l.burst = v.Burst
	}
	l.maxConcurrent, _ = values[partSlots].(int)
	l.quota, _ = values[partQuota].(int)
	if v, ok := values[partThrottle].(adminhook.Throttle); ok {
		l.k, l.maxRefusal = v.K, v.MaxRefusal
	}
	return l
}

// value returns the value of a part.
func (l *limits) value(part string) any {
	switch part {
	case partRate:
		return adminhook.Limits{Rate: l.rate, Burst: l.burst}
	case partSlots:
		return l.maxConcurrent
	case partQuota:
		return l.quota
	}
	return adminhook.Throttle{K: l.k, MaxRefusal: l.maxRefusal}
}

// limitChanges is the aspect of the action limits.
var limitChanges = &aspect{
	what: "limits",
	of:   func(t *target) *timedAction { return &t.limits },
	text: func(values map[string]any) string { return limitsFrom(values).String() },
}

// changesOf returns the changes that the fields of a body make to the limits of an object. Rate and
// burst are set together, and so are k and max_refusal.
func (l *limits) changesOf(o *adminhook.Object, v *values) (list []change) {
	given := map[string]bool{
		partRate: v.rate != nil || v.burst != nil, partSlots: v.maxConcurrent != nil,
		partQuota: v.limit != nil, partThrottle: v.k != nil || v.maxRefusal != nil,
	}
	for part, s := range limitParts(o) {
		if given[part] {
			list = append(list, change{part, s, l.value(part)})
		}
	}
	return list
}

// limitFields returns the fields of the action limits that an object has.
func limitFields(o *adminhook.Object) (names []string) {
	if o.Limits != nil {
		names = append(names, "rate", "burst")
	}
	if o.Slots != nil && !o.Slots.Fixed {
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
	next := limitsOf(o)
	e.Before = next.String()
	next.rate, next.burst = *firstNonNil(v.rate, &next.rate), *firstNonNil(v.burst, &next.burst)
	next.maxConcurrent, next.quota = *firstNonNil(v.maxConcurrent, &next.maxConcurrent), *firstNonNil(v.limit, &next.quota)
	next.k, next.maxRefusal = *firstNonNil(v.k, &next.k), *firstNonNil(v.maxRefusal, &next.maxRefusal)
	changes := next.changesOf(o, v)
	for _, c := range changes {
		if err := next.check(c); err != nil {
			return replyErrorf(http.StatusBadRequest, "%v", err)
		}
	}
	t.limits.begin(h, t, limitChanges, changes, why, v.duration)
	after := limitsOf(o)
	e.After = after.String()
	return nil
}

// check returns why the new value of a part is invalid.
func (l *limits) check(c change) error {
	var err error
	switch c.part {
	case partRate:
		err = limiter.TokenBucketConfig{Rate: l.rate, Burst: l.burst}.Validate()
	case partSlots:
		err = inflight.Config{Limit: l.maxConcurrent}.Validate()
	}
	if err == nil && c.setting.Check != nil {
		err = c.setting.Check(c.v)
	}
	return err
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
