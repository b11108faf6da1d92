package weirhttp

import (
	"context"
	"net/netip"
	"time"

	"github.com/weir-go/weir/limiter"
)

// answer is what one quota says to a request.
type answer struct {
	reply

	quota     *quota
	key       quotaKey
	addr      netip.Addr
	byNetwork bool           // counted by its network, because there was no room for the key
	remote    limiter.Remote // the limit that was asked, if the policy has a Remote
	given     bool           // there is an answer; a Remote is asked last
}

func (a *answer) refused() bool { return a.given && !a.OK }

// take takes n, and is counted. In the shadow it is always OK.
func (a *answer) take(at time.Time, n int) {
	a.reply = a.quota.keys.take(at, a.key, n)
	if a.byNetwork = a.quota.networks != nil && !a.room; a.byNetwork {
		a.reply = a.quota.networks.take(at, networkOf(a.addr), n)
	}
}

// look finds out what a request for n would get, and takes nothing. A shadow refuses nothing.
func (a *answer) look(at time.Time, n int) {
	a.given = true
	if a.quota.policy.Shadow {
		a.OK = true
		return
	}
	a.reply = a.ask(at, 0)
	if n <= a.Remaining {
		return
	}
	if a.reply = a.ask(at, n); a.OK { // it has just become free
		a.refund(at, n)
	}
}

// ask takes n from the quota that the request is counted by, without counting it in the statistics.
func (a *answer) ask(at time.Time, n int) reply {
	if a.byNetwork {
		return a.quota.networks.ask(at, networkOf(a.addr), n)
	}
	return a.quota.keys.ask(at, a.key, n)
}

// refund gives n back to the quota that the request is counted by. In the shadow it is not known
// whether anything was taken.
func (a *answer) refund(at time.Time, n int) {
	switch {
	case a.quota.policy.Shadow || n < 1:
	case a.byNetwork:
		a.quota.networks.refund(at, networkOf(a.addr), n)
	default:
		a.quota.keys.refund(at, a.key, n)
	}
}

// verdict is what all quotas that apply to a request say to it. It holds nothing that is kept, so that
// its answers may stand on the stack.
type verdict struct {
	cost    int
	answers []answer
}

func (v *verdict) refused() bool {
	for i := range v.answers {
		if v.answers[i].refused() {
			return true
		}
	}
	return false
}

// retryAfter returns the longest wait that the policies which refuse ask for.
func (v *verdict) retryAfter() (wait time.Duration) {
	for i := range v.answers {
		if a := &v.answers[i]; a.refused() {
			wait = max(wait, a.RetryAfter)
		}
	}
	return wait
}

// decide takes from all quotas or none. It looks at all of them first, because what is taken and given
// back may have been missing elsewhere meanwhile. A Remote is asked when the others would allow the
// request, since it may block. An error is that of a Remote that came to no decision.
func (v *verdict) decide(ctx context.Context, countRefused bool) error {
	now := time.Now()
	remotes := 0
	for i := range v.answers {
		if a := &v.answers[i]; a.quota.keys == nil {
			remotes++
		} else {
			a.look(now, v.cost)
		}
	}
	switch {
	case remotes == 0 || v.cost == 0 || v.refused():
	case v.cost < 0:
		v.refuseRemotes()
	default:
		if err := v.askRemotes(ctx); err != nil {
			return err
		}
		now = time.Now()
	}
	if v.refused() {
		v.takeNone(now, countRefused)
	} else {
		v.takeAll(ctx, now)
	}
	return nil
}

// takeAll takes from all quotas of this process.
func (v *verdict) takeAll(ctx context.Context, at time.Time) {
	for i := range v.answers {
		a := &v.answers[i]
		if a.quota.keys == nil {
			continue
		}
		if a.take(at, v.cost); !a.OK { // another request was faster
			v.giveBack(at, v.answers[:i])
			v.refundRemotes(ctx)
			return
		}
	}
}

// giveBack gives back what has been taken, and looks how things stand without it.
func (v *verdict) giveBack(at time.Time, taken []answer) {
	for i := range taken {
		if a := &taken[i]; a.quota.keys != nil {
			a.refund(at, v.cost)
			a.look(at, 0)
		}
	}
}

// takeNone has the quotas that refuse count it, and takes from the others only if refused requests count.
func (v *verdict) takeNone(at time.Time, countRefused bool) {
	for i := range v.answers {
		a := &v.answers[i]
		looked := a.reply
		if a.quota.keys == nil || looked.OK && !countRefused {
			continue
		}
		if a.take(at, v.cost); a.OK != looked.OK { // it has changed since it was looked at
			if a.OK {
				a.refund(at, v.cost)
			}
			a.reply = looked
		}
	}
}
