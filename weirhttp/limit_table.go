package weirhttp

import (
	"net/netip"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// limiters are functions of package limiter beyond its API.
var limiters = limiter.Inside(friend.Key{})

// quotaKey is the key of a quota: a text, or an address or network if the text is empty.
type quotaKey struct {
	addr netip.Addr
	text string
}

// Clone returns a copy to be stored: the text may be part of a longer string.
func (k quotaKey) Clone(friend.Key) quotaKey {
	k.text = strings.Clone(k.text)
	return k
}

// String returns the key as Limit.Busiest shows it.
func (k quotaKey) String() string {
	if k.text != "" {
		return k.text
	}
	return k.addr.String()
}

// keyTable holds what each key of a policy has used.
type keyTable interface {
	stat.Source

	// take takes n from the quota of the key, all or none, and counts the request in the
	// statistics. If the policy is a shadow, the reply is always OK.
	take(at time.Time, key quotaKey, n int) reply
	// peek returns what take would return without a shadow. It takes and counts nothing.
	peek(at time.Time, key quotaKey, n int) reply
	// refund gives back n. taken is that of the reply to take.
	refund(taken taken, key quotaKey, n int)
	// charge takes n, also beyond the quota. It reports whether the key has a quota of its own, and
	// otherwise takes nothing.
	charge(key quotaKey, n int) (own bool)
	// drain takes n, or the rest of the quota if that is less, which several keys may share. It
	// reports whether there was room for the key.
	drain(key quotaKey, n int) (room bool)
	// Busiest returns up to n of the keys that were refused most often.
	Busiest(n int) []limiter.BusyKey
	// Forget makes the quota of the key full, and reports whether the key was stored.
	Forget(key quotaKey) bool
	// forgetAll makes the quotas of all keys full.
	forgetAll()
	// successor returns a table with the same keys for another policy.
	successor(p Policy, name string) (keyTable, error)
}

// reply is the result of a keyTable.
type reply struct {
	limiter.Result

	next  time.Duration // until one more request can be made, if that is known
	room  bool          // the table has the key, or has room for it
	in    time.Duration // of a Quota, the length of the present period; next is until its end
	taken taken         // when the request was counted
}

// taken says when and where a table has counted a request.
type taken struct {
	at     time.Time // of a bucketTable and a calendarTable
	offset int64     // of a windowTable, since the epoch of its logs
	shared bool      // in the quota of all keys without room
}

// newKeyTable returns an empty table.
func newKeyTable(p Policy, name string, maxKeys int) keyTable {
	if p.isWindow() {
		return newWindowTable(p, name, maxKeys)
	}
	return newBucketTable(p, name, maxKeys)
}

// bucketTable is the table of a Policy with a Rate.
type bucketTable struct {
	*limiter.Group[quotaKey]

	policy  Policy
	maxKeys int
}

func newBucketTable(p Policy, name string, maxKeys int) *bucketTable {
	group := limiter.NewGroup(bucketConfig(p, name, maxKeys))
	return &bucketTable{Group: group, policy: p, maxKeys: maxKeys}
}

func bucketConfig(p Policy, name string, maxKeys int) limiter.GroupConfig[quotaKey] {
	return limiter.GroupConfig[quotaKey]{
		Rate: p.Rate, Burst: p.Burst, MaxKeys: maxKeys, ShareNew: p.ShareNew,
		Name: name, Shadow: p.Shadow, ShowKeys: p.ShowKeys,
	}
}

func (b *bucketTable) take(at time.Time, key quotaKey, n int) reply {
	r := b.reply(b.Get(key).TakeAt(at, n))
	r.taken = taken{at: at, shared: r.NoRoom}
	return r
}

func (b *bucketTable) peek(at time.Time, key quotaKey, n int) reply {
	return b.reply(b.Inside(friend.Key{}).LookAt(at, key, n))
}

// reply completes a result of the group. If the group refuses a key because it has no room, the
// ResetAfter of the result is 0, as for a full bucket.
func (b *bucketTable) reply(r limiter.Result) reply {
	noRoom := r.NoRoom && r.RetryAfter > 0 && r.RetryAfter != limiter.Never && r.ResetAfter == 0
	next := float64(r.ResetAfter) - float64(r.Limit-r.Remaining-1)*b.policy.interval()
	return reply{Result: r, next: time.Duration(max(next, 0)), room: !noRoom}
}

func (b *bucketTable) refund(taken taken, key quotaKey, n int) {
	b.Inside(friend.Key{}).PutBackAt(time.Now(), taken.at, key, n, taken.shared)
}

func (b *bucketTable) charge(key quotaKey, n int) (own bool) {
	return b.Inside(friend.Key{}).ChargeAt(time.Now(), key, n)
}

func (b *bucketTable) drain(key quotaKey, n int) (room bool) {
	for n > 0 {
		r := b.reply(b.Inside(friend.Key{}).TakeAt(time.Now(), key, n))
		if r.OK || !r.room {
			return r.room
		}
		// If a concurrent take had a later time, peek may show less than is left. It also says
		// whether there is room, which does not matter for more than a burst.
		if r = b.peek(time.Now(), key, 1); !r.room {
			return false
		}
		n = min(n-1, r.Remaining)
	}
	return true
}

// burst returns the burst in effect of a key.
func (b *bucketTable) burst() int {
	_, _, burst, _ := b.Inside(friend.Key{}).Figures()
	return burst
}

func (b *bucketTable) forgetAll() { b.Inside(friend.Key{}).ForgetAll() }

func (b *bucketTable) successor(p Policy, name string) (keyTable, error) {
	if p.Rate != b.policy.Rate || p.Burst != b.policy.Burst || p.Shadow != b.policy.Shadow || p.ShowKeys != b.policy.ShowKeys {
		if err := b.Reconfigure(bucketConfig(p, name, b.maxKeys)); err != nil {
			return nil, err
		}
	}
	next := *b
	next.policy = p
	return &next, nil
}
