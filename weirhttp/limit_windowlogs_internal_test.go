package weirhttp

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// Requests are taken and given back at random, some so late that they do not count any more.
func TestARefundNeverAllowsTooManyRequests(t *testing.T) {
	type request struct {
		at     int64
		key    quotaKey
		n      int
		refund bool
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		p := Policy{Limit: []int{5, 50}[seed%2], Window: 1600}
		logs := newWindowLogs(p, 100)
		var all []request
		for now := int64(0); now < 20_000; now += random.Int64N(300) {
			key := quotaKey{text: strconv.Itoa(random.IntN(2))}
			switch random.IntN(5) {
			case 0:
				if i := random.IntN(max(len(all), 1)); i < len(all) && !all[i].refund {
					all[i].refund = true
					logs.refund(taken{offset: all[i].at}, all[i].key, int64(all[i].n))
				}
			case 1:
				if random.IntN(20) == 0 {
					logs.forget(key)
					all = nil // what was taken before does not count any more
				}
			default:
				n := 1 + random.IntN(p.Limit/3)
				if r := logs.take(now, key, n); r.OK {
					all = append(all, request{at: r.taken.offset, key: key, n: n})
				}
			}
			used := map[quotaKey]int{}
			for _, r := range all {
				if !r.refund && r.at > now-int64(p.Window) {
					used[r.key] += r.n
				}
			}
			for key, n := range used {
				require.LessOrEqual(t, n, p.Limit, "%v at %d, seed %d", key, now, seed)
			}
		}
	}
}

// A refund after the quota was made full does not make it fuller.
func TestARefundAfterForgetGivesNothingBack(t *testing.T) {
	logs, key := newWindowLogs(Policy{Limit: 3, Window: time.Second}, 100), quotaKey{text: "k"}
	require.True(t, logs.take(1, key, 3).OK)
	require.True(t, logs.forget(key))
	require.True(t, logs.take(2, key, 3).OK)
	logs.refund(taken{offset: 1}, key, 3)
	require.False(t, logs.take(3, key, 1).OK)
	logs.refund(taken{offset: 2}, key, 2)
	require.False(t, logs.take(4, key, 3).OK)
	require.True(t, logs.take(5, key, 2).OK)
}

// A request is given back where it was counted: in the quota of its key, or in the one that keys
// without room share, although the key has lost or got room since.
func TestARefundGoesWhereTheRequestWasCounted(t *testing.T) {
	for form, p := range map[string]Policy{
		"bucket": {Rate: limiter.Per(3, time.Hour), Burst: 3, ShareNew: true},
		"window": {Limit: 3, Window: time.Hour, ShareNew: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			table := newKeyTable(p, "api", 1)
			take := func(key string, n int) reply { return table.take(time.Now(), quotaKey{text: key}, n) }
			own, shared := take("a", 3), take("b", 3)
			require.True(t, own.OK && shared.OK && shared.NoRoom, form)
			require.True(t, table.Forget(quotaKey{text: "a"}))
			require.True(t, take("c", 3).OK)
			table.refund(own.taken, quotaKey{text: "a"}, 3)
			require.False(t, take("d", 1).OK, form)

			require.True(t, table.Forget(quotaKey{text: "c"}))
			require.True(t, take("b", 3).OK)
			table.refund(shared.taken, quotaKey{text: "b"}, 3)
			require.False(t, take("b", 1).OK, form)
			require.True(t, take("d", 3).OK, form)
		})
	}
}

// A key is in use for a window. The wait of a key without room is until the first of the others is
// idle.
func TestAKeyIsInUseForAWindow(t *testing.T) {
	logs := newWindowLogs(Policy{Limit: 3, Window: 100}, 2)
	logs.take(0, quotaKey{text: "a"}, 1)
	logs.take(50, quotaKey{text: "b"}, 1)
	for at, want := range map[int64]time.Duration{60: 40, 99: 1} {
		r := logs.peek(at, quotaKey{text: "c"}, 1)
		require.False(t, r.room)
		require.Equal(t, want, r.RetryAfter)
	}
	require.True(t, logs.take(100, quotaKey{text: "c"}, 1).OK)
}

// A key is in use only as long as anything counts in its log.
func TestAKeyIsIdleWhenNothingCountsAfterARefund(t *testing.T) {
	logs, key := newWindowLogs(Policy{Limit: 3, Window: 100}, 1), quotaKey{text: "k"}
	logs.take(0, key, 1)
	late := logs.take(90, key, 1)
	logs.refund(late.taken, key, 1)
	require.False(t, logs.take(99, quotaKey{text: "other"}, 1).room)
	require.True(t, logs.take(100, quotaKey{text: "other"}, 1).OK)
}
