package weirhttp

import (
	"context"
	"net/netip"
	"time"

	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// decision holds the answers of all quotas that apply to a request. Nothing keeps a reference to
// it, so its answers can be on the stack.
type decision struct {
	cost    int
	answers []answer
}

// answer is the answer of one quota to a request.
type answer struct {
	reply

	quota   *policyInUse
	table   keyTable // that counts the request: quota.keys or quota.networks; nil for a Remote
	key     quotaKey // of the request in the table
	addr    netip.Addr
	granted remote.Tokens // what the Remote of the policy has granted
	given   bool          // there is a reply; a Remote that was not called has given none
	// until the quota allows the request again, if it has counted one that another quota refused
	again time.Duration

	remoteKeys int // how many keys the Remote can keep, if it has no room and says so
}

// decide takes the request from all quotas, or from none if one refuses. It first looks at all
// quotas of this process without taking anything, because tokens that are taken and given back are
// missing for other requests in the meantime. Remotes may block, so they are called only if all
// other quotas allow the request. decide returns an error only if a Remote came to no decision.
func (d *decision) decide(ctx context.Context, countRefused bool) error {
	now := time.Now()
	remotes := 0
	for i := range d.answers {
		if a := &d.answers[i]; a.table == nil {
			remotes++
		} else {
			a.peek(now, d.cost)
		}
	}
	switch {
	case remotes == 0 || d.cost == 0 || d.refused():
	case d.cost < 0:
		d.refuseRemotes()
	default:
		if err := d.askRemotes(ctx); err != nil {
			return err
		}
		now = time.Now()
	}
	if d.refused() {
		d.countRefusal(now, countRefused)
	} else {
		d.takeAll(ctx, now)
	}
	return nil
}

// takeAll takes the request from all quotas of this process. If a quota refuses now, because a
// concurrent request was faster, takeAll gives everything back.
func (d *decision) takeAll(ctx context.Context, at time.Time) {
	for i := range d.answers {
		a := &d.answers[i]
		if a.table == nil {
			continue
		}
		if a.take(at, d.cost); !a.OK {
			d.refund(at, d.answers[:i])
			d.refundRemotes(ctx)
			return
		}
	}
}

// refund gives back the tokens that were taken for these answers.
func (d *decision) refund(at time.Time, taken []answer) {
	for i := range taken {
		if a := &taken[i]; a.table != nil {
			a.refund(d.cost)
			a.peek(at, 0)
		}
	}
}

// countRefusal counts the request in the quotas that refuse it, and takes it from the others if
// countRefused is set.
func (d *decision) countRefusal(at time.Time, countRefused bool) {
	for i := range d.answers {
		a := &d.answers[i]
		peeked := a.reply
		if a.table == nil && a.refused() {
			a.quota.refusals.Add(a.key)
		}
		if a.table == nil || peeked.OK && !countRefused {
			continue
		}
		switch a.take(at, d.cost); {
		case a.OK != peeked.OK: // the quota has changed since peek
			if a.OK {
				a.refund(d.cost)
			}
			a.reply = peeked
		case a.OK && !a.quota.policy.Shadow:
			a.again = a.table.peek(at, a.key, d.cost).RetryAfter
		}
	}
}

// warnNoRoom logs the policies that have no room for the key of the request.
func (d *decision) warnNoRoom(ctx context.Context) {
	for i := range d.answers {
		if a := &d.answers[i]; a.hasNoRoom() {
			a.quota.warnNoRoom(ctx, a.maxKeys())
		}
	}
}

func (d *decision) refused() bool {
	for i := range d.answers {
		if d.answers[i].refused() {
			return true
		}
	}
	return false
}

// retryAfter returns the longest wait of the policies that refuse, or would refuse the same request
// now because they have counted this one.
func (d *decision) retryAfter() (wait time.Duration) {
	for i := range d.answers {
		a := &d.answers[i]
		wait = max(wait, a.again)
		if a.refused() {
			wait = max(wait, a.RetryAfter)
		}
	}
	return wait
}

func (a *answer) refused() bool { return a.given && !a.OK }

// byNetwork reports whether the request is counted by network, because there is no room for its
// key.
func (a *answer) byNetwork() bool { return a.table != nil && a.table != a.quota.keys }

// hasNoRoom reports whether there is no room for the key.
func (a *answer) hasNoRoom() bool { return a.NoRoom || a.byNetwork() }

// maxKeys returns how many keys have room, or 0 if a Remote does not say.
func (a *answer) maxKeys() int {
	if a.table == nil {
		return a.remoteKeys
	}
	return a.quota.policy.maxKeys()
}

// noRoom returns the error of a request that was refused because there is no room for its key, or
// nil.
func (a *answer) noRoom() error {
	if !a.refused() || !a.hasNoRoom() || a.RetryAfter == limiter.Never {
		return nil
	}
	e := &noRoomError{policy: a.quota.policy.Name, maxKeys: a.maxKeys(), shared: a.room}
	if a.byNetwork() {
		e.networks = a.quota.policy.maxNetworks()
	}
	return e
}

// peek sets the reply that a request for n would get, and takes nothing. A shadow refuses nothing.
func (a *answer) peek(at time.Time, n int) {
	a.given = true
	a.reply = a.table.peek(at, a.key, n)
	if a.switchToNetwork() {
		a.reply = a.table.peek(at, a.key, n)
	}
	a.OK = a.OK || a.quota.policy.Shadow
}

// take takes n and counts the request in the statistics. A shadow refuses nothing.
func (a *answer) take(at time.Time, n int) {
	a.reply = a.table.take(at, a.key, n)
	if a.switchToNetwork() { // there was room when peek was called
		a.reply = a.table.take(at, a.key, n)
	}
}

// switchToNetwork makes the request count for its network if there is no room for its key. It
// reports whether the table has changed.
func (a *answer) switchToNetwork() bool {
	if a.room || a.quota.networks == nil || a.table == a.quota.networks {
		return false
	}
	a.table, a.key = a.quota.networks, networkKey(a.addr)
	return true
}

// refund gives n back. A shadow gives nothing back, because it is not known whether it took
// anything.
func (a *answer) refund(n int) {
	if !a.quota.policy.Shadow && n > 0 {
		a.table.refund(a.taken, a.key, n)
	}
}

// askRemotes takes tokens from the Remote of each policy that has one, in order. If one refuses,
// returns an error or panics, the others get their tokens back.
func (d *decision) askRemotes(ctx context.Context) error {
	allowed := false
	defer func() {
		if !allowed {
			d.refundRemotes(ctx)
		}
	}()
	for i := range d.answers {
		a := &d.answers[i]
		if a.table != nil {
			continue
		}
		limit := a.quota.remote(a.key)
		result, granted, err := remote.Take(ctx, limit, d.cost)
		if err != nil {
			return &undecidedError{policy: a.quota.policy.Name, err: err}
		}
		a.reply, a.given = reply{Result: result, next: result.RetryAfter, room: !result.NoRoom}, true
		if m, ok := limit.(interface{ MaxKeys() int }); ok && result.NoRoom {
			a.remoteKeys = m.MaxKeys()
		}
		if !result.OK {
			return nil
		}
		if result.RetryAfter <= 0 { // otherwise shadow mode has taken nothing
			a.granted = granted
		}
	}
	allowed = true
	return nil
}

// refuseRemotes sets the replies of policies with a Remote to a final refusal, without calling the
// Remotes.
func (d *decision) refuseRemotes() {
	for i := range d.answers {
		if a := &d.answers[i]; a.table == nil {
			a.reply, a.given = reply{Result: limiter.Result{RetryAfter: limiter.Never}}, true
		}
	}
}

// refundRemotes gives back what remote limits have granted, even if the request was cancelled
// meanwhile.
func (d *decision) refundRemotes(ctx context.Context) {
	for i := range d.answers {
		d.answers[i].granted.Refund(ctx)
	}
}

// undecidedError wraps the error of a Remote that made no decision.
type undecidedError struct {
	policy string
	err    error
}

func (e *undecidedError) Error() string {
	return "weirhttp: policy \"" + e.policy + "\" came to no decision: " + e.err.Error()
}

func (e *undecidedError) Unwrap() error { return e.err }
