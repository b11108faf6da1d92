package weirhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// policyField returns the item of RateLimit-Policy for a policy: its quota in a window of whole seconds.
// A shorter time is extended to a second.
func policyItem(p Policy) string {
	n, in := p.requestsIn()
	w := wholeSeconds(in)
	if exact := time.Duration(w) * time.Second; exact != in {
		n = int64(float64(n) * (float64(exact) / float64(in)))
	}
	return `"` + p.Name + `";q=` + strconv.FormatInt(n, 10) + ";w=" + strconv.FormatInt(w, 10)
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

// writeHeaders tells how things stand. It adds to RateLimit, because a limit may stand before another.
func (s *rules) writeHeaders(h http.Header, d *decision) {
	if !s.config.Quiet {
		if policies := d.policies(); policies != "" {
			var room [128]byte
			h[headerPolicy] = append(h[headerPolicy], policies) // as Add does, which would spell the name again
			h[headerLimit] = append(h[headerLimit], string(d.appendLimits(room[:0])))
		}
	}
	if s.config.Legacy {
		d.writeLegacy(h)
	}
}

func (d *decision) policies() string {
	var list []byte
	for i := range d.answers {
		if a := &d.answers[i]; a.isShown() {
			list = appendItem(list, a.policyItem())
		}
	}
	return string(list)
}

// isShown reports whether the headers tell of the policy: not of a shadow, nor of a Remote that was
// not asked or tells no limit.
func (a *answer) isShown() bool {
	return a.given && !a.quota.policy.Shadow && (a.table != nil || a.Limit > 0)
}

// policyField returns the item of RateLimit-Policy. The window of a Remote is not known.
func (a *answer) policyItem() string {
	if a.table != nil {
		return a.quota.item
	}
	return `"` + a.quota.policy.Name + `";q=` + strconv.Itoa(a.Limit)
}

func (d *decision) appendLimits(to []byte) []byte {
	refused := d.refused()
	for i := range d.answers {
		if a := &d.answers[i]; a.isShown() {
			to = a.appendLimit(appendItem(to, ""), refused)
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

// appendLimit appends the item of RateLimit. On a refusal, the policies that allow the request give no
// time, because it could be later than Retry-After, which it must not be. Neither do policies that will
// never allow the request, nor a Remote that allows it, whose rate is not known.
func (a *answer) appendLimit(to []byte, refused bool) []byte {
	to = append(append(append(to, '"'), a.quota.policy.Name...), `";r=`...)
	to = strconv.AppendInt(to, int64(a.Remaining), 10)
	wait := int64(0)
	switch {
	case refused && !a.OK && a.RetryAfter != limiter.Never:
		wait = wholeSeconds(a.RetryAfter)
	case !refused && a.table != nil:
		wait = a.effectiveWindow()
	default:
		return to
	}
	return strconv.AppendInt(append(to, ";t="...), wait, 10)
}

// effectiveWindow returns the seconds in which a client can use no more than what is left: until there
// is one more, and at least what the remaining requests take at the rate of the policy.
func (a *answer) effectiveWindow() int64 {
	t := max(float64(a.next), float64(a.Remaining)*a.quota.policy.interval())
	return wholeSeconds(time.Duration(min(t, math.MaxInt64/2)))
}

// writeLegacy sets the headers that many clients know: those of the nearest policy, and the time until
// its quota is full again. They mean the same whether the request is refused or not.
func (d *decision) writeLegacy(h http.Header) {
	var nearest *answer
	for i := range d.answers {
		if a := &d.answers[i]; a.isShown() && (nearest == nil || a.nearer(nearest)) {
			nearest = a
		}
	}
	if nearest == nil {
		return
	}
	h.Set(legacyLimit, strconv.Itoa(nearest.Limit))
	h.Set(legacyRemaining, strconv.Itoa(nearest.Remaining))
	h.Set(legacyReset, strconv.FormatInt(wholeSeconds(nearest.reset()), 10))
}

// reset returns the time until the quota is full again. It is never less than RetryAfter.
func (a *answer) reset() time.Duration {
	if a.RetryAfter == limiter.Never {
		return a.ResetAfter
	}
	return max(a.ResetAfter, a.RetryAfter)
}

// nearer reports whether a has less left than b or, if they have the same, takes longer to be full.
func (a *answer) nearer(b *answer) bool {
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.reset() > b.reset()
}
