package weirhttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir"
)

// left is what a response says that the service still allows of a resource until a time from now.
type left struct {
	n     int
	reset time.Duration
	known bool
}

// atMost replaces the number by that of another limit if this allows less.
func (l *left) atMost(n string, reset time.Duration) {
	count, err := strconv.ParseFloat(n, 64)
	if err != nil || count != count || reset <= 0 {
		return
	}
	whole := int(min(max(count, 0), maxQuota))
	if !l.known || whole < l.n {
		*l = left{whole, reset, true}
	}
}

// obey tells the gate what the service says is left.
func (t *Transport) obey(gate *weir.Gate, permit *weir.Permit, h http.Header) {
	calls, costs := remaining(h)
	if calls.known {
		gate.SetRemaining(permit, calls.n, min(calls.reset, t.config.MaxRetryAfter))
	}
	if costs.known {
		gate.SetRemainingCost(permit, costs.n, min(costs.reset, t.config.MaxRetryAfter))
	}
}

// remaining returns what the headers of a response say is left, of requests and of what they cost.
// If several limits are named, it returns the one of which the least is left. RateLimit is that of
// draft 10 of the IETF. The others are in wide use, without a standard.
func remaining(h http.Header) (calls, costs left) {
	policies := map[string]map[string]string{}
	for _, field := range h.Values("RateLimit-Policy") {
		items, _ := parseItems(field)
		for _, p := range items {
			policies[p[""]] = p
		}
	}
	for _, field := range h.Values("RateLimit") {
		items, _ := parseItems(field)
		for _, p := range items {
			policy := policies[p[""]]
			seconds := p["t"]
			if seconds == "" {
				seconds = policy["w"]
			}
			of := &calls
			if unit := policy["qu"]; unit != "" && unit != "requests" {
				of = &costs
			}
			of.atMost(p["r"], untilReset(seconds, h))
		}
	}
	for _, form := range []struct {
		of                *left
		remaining, resets string
	}{
		{&calls, "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		{&calls, "Ratelimit-Remaining", "Ratelimit-Reset"},
		{&calls, "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{&costs, "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	} {
		if n := h.Get(form.remaining); n != "" {
			form.of.atMost(n, untilReset(h.Get(form.resets), h))
		}
	}
	return calls, costs
}

// untilReset returns the time until the moment in the text: seconds, which may have a fraction, a
// duration such as 6m0s, or what untilTime knows. It is 0 or less if there is no such time.
func untilReset(s string, h http.Header) time.Duration {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second))
	}
	return untilTime(s, h)
}
