package weirhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// policyField is a policy as an item of RateLimit-Policy: its quota in a window of whole seconds. A shorter span is
// counted up to a second.
func policyField(p Policy) string {
	q, w := int64(p.Limit), wholeSeconds(p.Span)
	if exact := time.Duration(w) * time.Second; exact != p.Span {
		q = int64(float64(p.Limit) * (float64(exact) / float64(p.Span)))
	}
	return `"` + p.Name + `";q=` + strconv.FormatInt(q, 10) + ";w=" + strconv.FormatInt(w, 10)
}

// wholeSeconds is a time in whole seconds, at least 1 and never less than it is.
func wholeSeconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(whole, 1)
}

// The names of the headers as http.Header has them.
const (
	headerPolicy    = "Ratelimit-Policy"
	headerLimit     = "Ratelimit"
	legacyLimit     = "X-Ratelimit-Limit"
	legacyRemaining = "X-Ratelimit-Remaining"
	legacyReset     = "X-Ratelimit-Reset"
)

// tell writes into the headers how things stand. It adds to RateLimit: a limit may stand before another.
func (s *rules) tell(h http.Header, v *verdict) {
	if !s.config.Quiet {
		if policies := s.policies(v); policies != "" {
			var room [128]byte
			h.Add(headerPolicy, policies)
			h.Add(headerLimit, string(v.appendLimits(room[:0])))
		}
	}
	if s.config.Legacy {
		v.tellLegacy(h)
	}
}

func (s *rules) policies(v *verdict) string {
	if len(v.answers) == len(s.quotas) {
		return s.fields
	}
	var list []byte
	for i := range v.answers {
		if q := v.answers[i].quota; !q.policy.Shadow {
			list = appendItem(list, q.field)
		}
	}
	return string(list)
}

func (v *verdict) appendLimits(to []byte) []byte {
	for i := range v.answers {
		if a := &v.answers[i]; !a.quota.policy.Shadow {
			to = a.appendLimit(appendItem(to, ""), v.refused)
		}
	}
	return to
}

// appendItem appends an item to a list.
func appendItem(list []byte, item string) []byte {
	if len(list) > 0 {
		list = append(list, ", "...)
	}
	return append(list, item...)
}

// appendLimit appends the item of RateLimit. Where the request is refused, those that did not refuse it give no time, for it might be
// later than Retry-After, which it must not be; and neither do those that will never let it through.
func (a *answer) appendLimit(to []byte, refused bool) []byte {
	to = append(append(append(to, '"'), a.quota.policy.Name...), `";r=`...)
	to = strconv.AppendInt(to, int64(a.result.Remaining), 10)
	switch {
	case refused && (a.result.OK || a.result.RetryAfter == limiter.Never):
		return to
	case refused:
		return strconv.AppendInt(append(to, ";t="...), wholeSeconds(a.result.RetryAfter), 10)
	}
	return strconv.AppendInt(append(to, ";t="...), a.window(), 10)
}

// window is the time in which a client can use no more than what is left: until there is one more, and no less than
// what is left takes at the rate of the policy.
func (a *answer) window() int64 {
	p, r := &a.quota.policy, &a.result
	each := float64(p.Span) / float64(p.Limit)
	next := float64(r.ResetAfter) - float64(r.Limit-r.Remaining-1)*each
	return wholeSeconds(time.Duration(min(max(next, float64(r.Remaining)*each), math.MaxInt64/2)))
}

// tellLegacy sets the headers that many clients know: those of the nearest policy, and the time until its quota is full
// again. They mean the same whether the request is refused or not.
func (v *verdict) tellLegacy(h http.Header) {
	var nearest *answer
	for i := range v.answers {
		if a := &v.answers[i]; !a.quota.policy.Shadow && (nearest == nil || a.nearer(nearest)) {
			nearest = a
		}
	}
	if nearest == nil {
		return
	}
	h.Set(legacyLimit, strconv.Itoa(nearest.result.Limit))
	h.Set(legacyRemaining, strconv.Itoa(nearest.result.Remaining))
	h.Set(legacyReset, strconv.FormatInt(wholeSeconds(nearest.reset()), 10))
}

// reset returns the time until the quota is full again. It is never less than RetryAfter.
func (a *answer) reset() time.Duration {
	if a.result.RetryAfter == limiter.Never {
		return a.result.ResetAfter
	}
	return max(a.result.ResetAfter, a.result.RetryAfter)
}

// nearer reports whether a has less left than b or, if they have the same, takes longer to be full.
func (a *answer) nearer(b *answer) bool {
	if a.result.Remaining != b.result.Remaining {
		return a.result.Remaining < b.result.Remaining
	}
	return a.reset() > b.reset()
}
