package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// values are the members of a body. Pointers are nil for members that are not given.
type values struct {
	state         breaker.State
	duration      time.Duration // 0 if the action does not end automatically
	reason        string
	rate          *limiter.Rate
	burst         *int
	maxConcurrent *int
	limit         *int
	k, maxRefusal *float64
	match         []string
	silence       string
	notifier      string
}

// forcedStates maps the states that a body can have to the states that Force sets.
var forcedStates = map[string]breaker.State{
	"open": breaker.ForcedOpen, "closed": breaker.ForcedClosed, "disabled": breaker.Disabled, "shadow": breaker.Shadow,
}

// maxActionTime is the maximum duration of an action.
const maxActionTime = 30 * 24 * time.Hour

// parse returns the values of a body with the fields of a route.
func parse(members map[string]json.RawMessage, fields []field) (v values, err error) {
	for name := range members {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return v, replyErrorf(http.StatusBadRequest, "the body has an unknown field %.64q, must be of %s", name, namesOf(fields))
		}
	}
	for _, f := range fields {
		text, given := members[f.name]
		if !given && f.required {
			return v, replyErrorf(http.StatusBadRequest, "the body has no %q: %s", f.name, f.help)
		}
		if !given {
			continue
		}
		if err := v.set(f, text); err != nil {
			return v, err
		}
	}
	return v, nil
}

func namesOf(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// set sets the value of a field.
func (v *values) set(f field, text json.RawMessage) error {
	switch f.kind {
	case "integer":
		n := new(int)
		if json.Unmarshal(text, &n) != nil || n == nil || *n < 1 {
			return replyErrorf(http.StatusBadRequest, "%s is %.64s, must be a whole number of at least 1", f.name, text)
		}
		*map[string]**int{"burst": &v.burst, "max_concurrent": &v.maxConcurrent, "limit": &v.limit}[f.name] = n
		return nil
	case "number":
		n := new(float64)
		if json.Unmarshal(text, &n) != nil || n == nil || *n <= 0 {
			return replyErrorf(http.StatusBadRequest, "%s is %.64s, must be a number above 0", f.name, text)
		}
		*map[string]**float64{"k": &v.k, "max_refusal": &v.maxRefusal}[f.name] = n
		return nil
	case "array":
		if json.Unmarshal(text, &v.match) != nil || len(v.match) == 0 || slices.Contains(v.match, "") {
			return replyErrorf(http.StatusBadRequest, "%s must be an array of strings: %s", f.name, f.help)
		}
		return nil
	}
	value := new(string)
	if json.Unmarshal(text, &value) != nil || value == nil {
		return replyErrorf(http.StatusBadRequest, "%s is %.64s, must be a string: %s", f.name, text, f.help)
	}
	return v.setText(f, *value)
}

func (v *values) setText(f field, text string) error {
	var err error
	known := true
	switch f.name {
	case "state":
		v.state, known = forcedStates[text]
	case "for":
		v.duration, err = time.ParseDuration(text)
		known = err == nil && v.duration > 0 && v.duration <= maxActionTime
	case "reason":
		v.reason = text
		known = len(text) <= maxReason && truncateText(text, maxReason) == text
	case "rate":
		rate, err := limiter.ParseRate(text)
		if err == nil {
			err = rate.Validate()
		}
		if err != nil {
			return replyErrorf(http.StatusBadRequest, "%v", err)
		}
		v.rate = &rate
	case "silence":
		v.silence = text
		known = text != ""
	case "notifier":
		v.notifier = text
	}
	if !known {
		return replyErrorf(http.StatusBadRequest, "%s is %.64q, must be %s", f.name, text, f.help)
	}
	return nil
}
