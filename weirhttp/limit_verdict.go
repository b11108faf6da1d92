package weirhttp

import (
	"net/netip"
	"time"

	"github.com/weir-go/weir/limiter"
)

// answer is what one quota says to a request.
type answer struct {
	quota     *quota
	key       quotaKey
	addr      netip.Addr
	byNetwork bool // counted by its network, because there was no room for the key
	result    limiter.Result
}

// take takes, and is counted. In the shadow it is always OK.
func (a *answer) take(at time.Time, n int) {
	a.result = a.quota.keys.TakeAt(at, a.key, n)
	if a.byNetwork = a.quota.networks != nil && foundNoRoom(a.result); a.byNetwork {
		a.result = a.quota.networks.TakeAt(at, networkOf(a.addr), n)
	}
}

// look tells what a request would get, and takes nothing. A shadow refuses nothing, so there is nothing to see.
func (a *answer) look(at time.Time, n int) {
	if a.quota.policy.Shadow {
		a.result.OK = true
		return
	}
	a.result = a.takeUncounted(at, 0)
	if n <= a.result.Remaining {
		return
	}
	if a.result = a.takeUncounted(at, n); a.result.OK { // it has just become free
		a.refund(n)
	}
}

// giveBack undoes a take that was OK. Of the shadow it is not known whether anything was taken.
func (a *answer) giveBack(n int) {
	if !a.quota.policy.Shadow {
		a.refund(n)
	}
}

// verdict is what all quotas that a request falls under say to it.
type verdict struct {
	cost    int
	refused bool
	answers []answer
}

// retryAfter is the longest wait that those who refuse ask for.
func (v *verdict) retryAfter() (wait time.Duration) {
	for i := range v.answers {
		if a := &v.answers[i]; !a.result.OK {
			wait = max(wait, a.result.RetryAfter)
		}
	}
	return wait
}

// settle takes from all or none. All have been asked before, because what is taken and given back may have been missing
// elsewhere meanwhile.
func (v *verdict) settle(at time.Time, countRefused bool) {
	for i := range v.answers {
		v.refused = v.refused || !v.answers[i].result.OK
	}
	if v.refused {
		v.takeNone(at, countRefused)
	} else {
		v.takeAll(at)
	}
}

func (v *verdict) takeAll(at time.Time) {
	for i := range v.answers {
		a := &v.answers[i]
		if a.take(at, v.cost); !a.result.OK { // somebody was faster
			v.refused = true
			v.giveBack(at, v.answers[:i])
			return
		}
	}
}

// giveBack undoes what has been taken, and looks how things stand without it.
func (v *verdict) giveBack(at time.Time, taken []answer) {
	for i := range taken {
		a := &taken[i]
		a.giveBack(v.cost)
		a.look(at, 0)
	}
}

// takeNone has those that refuse count it, and takes from the others only where refused requests count.
func (v *verdict) takeNone(at time.Time, countRefused bool) {
	for i := range v.answers {
		a := &v.answers[i]
		looked := a.result
		if looked.OK && !countRefused {
			continue
		}
		if a.take(at, v.cost); a.result.OK != looked.OK { // it has changed since it was looked at
			if a.result.OK {
				a.giveBack(v.cost)
			}
			a.result = looked
		}
	}
}
