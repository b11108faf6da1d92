package weirhttp

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// policyItem returns the item of a policy for RateLimit-Policy: its quota in a window of whole
// seconds. A shorter window is extended to a second, and one with fewer requests than a bucket has
// to the time that the bucket takes to fill.
func policyItem(p Policy) string {
	n, in := p.requestsIn()
	if burst := int64(p.Burst); burst > n {
		n, in = burst, time.Duration(min(float64(burst)*p.interval(), float64(maxSeconds)*float64(time.Second)))
	}
	w := wholeSeconds(in)
	if exact := time.Duration(w) * time.Second; exact != in {
		n = int64(float64(n) * (float64(exact) / float64(in)))
	}
	return p.itemOf(n) + ";w=" + strconv.FormatInt(w, 10)
}

// itemOf returns the beginning of the item of a policy with a quota.
func (p Policy) itemOf(quota int64) string {
	item := `"` + p.Name + `";q=` + strconv.FormatInt(quota, 10)
	if p.Unit != "" {
		item += `;qu="` + p.Unit + `"`
	}
	return item
}

// wholeSeconds returns a duration in seconds, rounded up to at least 1.
func wholeSeconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(whole, 1)
}

// The names of headers in their canonical form.
const (
	headerPolicy    = "Ratelimit-Policy"
	headerLimit     = "Ratelimit"
	legacyLimit     = "X-Ratelimit-Limit"
	legacyRemaining = "X-Ratelimit-Remaining"
	legacyReset     = "X-Ratelimit-Reset"
)

// writeHeaders writes the headers about the quotas. It appends to RateLimit, because there may be
// several limits in a row.
func (s *rules) writeHeaders(h http.Header, d *decision) {
	if !s.config.Quiet {
		if policies := d.policies(); policies != "" {
			var room [128]byte
			// As Add does, but without making the canonical form of the name.
			h[headerPolicy] = append(h[headerPolicy], policies)
			h[headerLimit] = append(h[headerLimit], string(d.appendLimits(room[:0])))
		}
	}
	if s.config.Legacy {
		d.writeLegacy(h)
	}
}

// policies returns the value of RateLimit-Policy.
func (d *decision) policies() string {
	var list []byte
	for i := range d.answers {
		if a := &d.answers[i]; a.isShown() {
			list = appendItem(list, a.policyItem())
		}
	}
	return string(list)
}

// isShown reports whether the headers have an item for the policy. A policy in shadow mode has
// none, nor has a Remote that was not called or returned no limit.
func (a *answer) isShown() bool {
	return a.given && !a.quota.policy.Shadow && (a.table != nil || a.Limit > 0)
}

// policyItem returns the item of RateLimit-Policy. The window of a Remote is not known.
func (a *answer) policyItem() string {
	if a.quota.item != "" {
		return a.quota.item
	}
	item := a.quota.policy.itemOf(int64(a.Limit))
	if a.in > 0 {
		item += ";w=" + strconv.FormatInt(wholeSeconds(a.in), 10)
	}
	return item
}

// appendLimits appends the value of RateLimit.
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

// appendLimit appends the item of RateLimit. If one policy refuses the request, the items of the
// policies that allow it have no time, because a time must not be later than Retry-After. The item
// of a policy that will never allow the request has no time either. If a Remote allows the request,
// its item has no time, because the rate of a Remote is not known.
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

// effectiveWindow returns the number of seconds over which a client can spread the remaining
// requests again and again. It is the time until one more request can be made, or the time that the
// remaining requests take at the rate of the policy, whichever is longer. Of a Quota, it is the
// time until the end of the period.
func (a *answer) effectiveWindow() int64 {
	p := a.quota.policy
	if p.Quota != nil {
		return wholeSeconds(a.next)
	}
	pace := p.interval()
	if p.isWindow() { // requests may count longer
		pace += float64(p.windowLimit().spanWidth()) / float64(p.Limit)
	}
	t := max(float64(a.next), float64(a.Remaining)*pace)
	return wholeSeconds(time.Duration(min(t, math.MaxInt64/2)))
}

// writeLegacy sets the X-RateLimit headers, of the policy that is closest to its limit. Reset is
// the time until its quota is full again, whether the request is refused or not.
func (d *decision) writeLegacy(h http.Header) {
	var closest *answer
	for i := range d.answers {
		if a := &d.answers[i]; a.isShown() && (closest == nil || a.closerThan(closest)) {
			closest = a
		}
	}
	if closest == nil {
		return
	}
	h.Set(legacyLimit, strconv.Itoa(closest.Limit))
	h.Set(legacyRemaining, strconv.Itoa(closest.Remaining))
	h.Set(legacyReset, strconv.FormatInt(wholeSeconds(closest.reset()), 10))
}

// reset returns the time until the quota is full again, at least RetryAfter.
func (a *answer) reset() time.Duration {
	if a.RetryAfter == limiter.Never {
		return a.ResetAfter
	}
	return max(a.ResetAfter, a.RetryAfter)
}

// closerThan reports whether a has less left than b or, if they have the same, takes longer to be
// full.
func (a *answer) closerThan(b *answer) bool {
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.reset() > b.reset()
}
