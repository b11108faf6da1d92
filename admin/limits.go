package admin

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat/view"
)

// limits are the limits of an object. Limits that the object does not have are 0.
type limits struct {
	rate          limiter.Rate
	burst         int // as configured: 0 is the default
	maxConcurrent int
	quota         int // requests per window
	k, maxRefusal float64
}

// limitsOfParts returns the limits of the settings of some parts.
func limitsOfParts(parts map[string][]view.Setting) limits {
	return limitsIn(slices.Concat(slices.Collect(maps.Values(parts))...))
}

// limitsIn returns the limits in a list of settings. A value that is not valid, which only a guard
// of a user can have, is 0.
func limitsIn(list []view.Setting) (l limits) {
	for _, s := range list {
		switch s.Name {
		case "rate":
			_ = l.rate.UnmarshalText([]byte(s.Value))
		case "burst":
			l.burst, _ = strconv.Atoi(s.Value)
		case "max_concurrent":
			l.maxConcurrent, _ = strconv.Atoi(s.Value)
		case "limit":
			l.quota, _ = strconv.Atoi(s.Value)
		case "k":
			l.k = finite(s.Value)
		case "max_refusal":
			l.maxRefusal = finite(s.Value)
		}
	}
	return l
}

func finite(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// settings returns the values of the settings of a part.
func (l *limits) settings(of []view.Setting) []view.Setting {
	values := map[string]string{
		"rate": l.rate.String(), "burst": strconv.Itoa(l.burst), "max_concurrent": strconv.Itoa(l.maxConcurrent),
		"limit": strconv.Itoa(l.quota), "k": settings.Number(l.k), "max_refusal": settings.Number(l.maxRefusal),
	}
	for i := range of {
		of[i].Value = values[of[i].Name]
	}
	return of
}

// limitChanges is the aspect of the action limits.
var limitChanges = &aspect{
	what: "limits",
	of:   func(t *target) *timedAction { return &t.limits },
	text: func(parts map[string][]view.Setting) string { return limitsOfParts(parts).String() },
}

// changesOf returns the changes that the fields of a body make to the limits of an object. Rate and
// burst are set together, and so are k and max_refusal.
func (l *limits) changesOf(o *object, present []view.Setting, v *values) (list []change) {
	given := map[string]bool{
		partRate: v.rate != nil || v.burst != nil, partSlots: v.maxConcurrent != nil,
		partQuota: v.limit != nil, partThrottle: v.k != nil || v.maxRefusal != nil,
	}
	for _, part := range slices.Sorted(maps.Keys(given)) {
		if s := partOf(present, part); given[part] && len(s) > 0 {
			list = append(list, change{part, o.tunable, l.settings(s)})
		}
	}
	return list
}

// limitFields returns the fields of the action limits among the settings of an object.
func limitFields(present []view.Setting) (names []string) {
	for _, part := range []string{partRate, partSlots, partQuota, partThrottle} {
		for _, s := range partOf(present, part) {
			names = append(names, s.Name)
		}
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
func (t *target) changeLimits(h *Handler, o *object, r *request, e *entry, why string) error {
	v, present := &r.body, o.settings()
	has := limitFields(present)
	given := v.givenLimits()
	if len(given) == 0 {
		return replyErrorf(http.StatusBadRequest, "the body has none of %s", strings.Join(has, ", "))
	}
	for _, name := range given {
		if !slices.Contains(has, name) {
			return replyErrorf(http.StatusConflict, "the %s %.64q has no %s that can be changed, only %s", o.Kind, o.Name, name, strings.Join(has, ", "))
		}
	}
	next := limitsIn(present)
	e.Before = next.String()
	next.rate, next.burst = *firstNonNil(v.rate, &next.rate), *firstNonNil(v.burst, &next.burst)
	next.maxConcurrent, next.quota = *firstNonNil(v.maxConcurrent, &next.maxConcurrent), *firstNonNil(v.limit, &next.quota)
	next.k, next.maxRefusal = *firstNonNil(v.k, &next.k), *firstNonNil(v.maxRefusal, &next.maxRefusal)
	changes := next.changesOf(o, present, v)
	for _, c := range changes {
		if err := next.check(c); err != nil {
			return replyErrorf(http.StatusBadRequest, "%v", err)
		}
	}
	if err := t.limits.begin(h, t, limitChanges, changes, why, v.duration); err != nil {
		return replyErrorf(http.StatusBadRequest, "%v", err)
	}
	after := limitsIn(o.settings())
	e.After = after.String()
	return nil
}

// check returns why the new values of a part are invalid. The guard itself checks the others.
func (l *limits) check(c change) error {
	switch c.part {
	case partRate:
		if len(c.to) < len(partNames[partRate]) { // a guard of a user with one of the two
			return nil
		}
		return limiter.TokenBucketConfig{Rate: l.rate, Burst: l.burst}.Validate()
	case partSlots:
		return inflight.Config{Limit: l.maxConcurrent}.Validate()
	}
	return nil
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
