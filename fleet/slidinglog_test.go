package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

// A long log blocks the server only for a short time: expired entries are deleted a thousand at a
// time.
func TestLongLogIsDeletedInSteps(t *testing.T) {
	const limit, span = 3500, time.Hour
	direct := newClient(t, sharedServer())
	b := newLimiter(connect(t), "long", fleet.SlidingLog{Limit: limit, Window: span}, errorOnOutage)
	for i := range limit {
		r, err := b.TakeAt(t.Context(), testStart.Add(time.Duration(i)*us), "user", 1)
		require.NoError(t, err)
		require.True(t, r.OK)
	}
	entries := func() int64 { return direct.ZCard(t.Context(), b.StateKeys("user")[0]).Val() - 1 }
	require.EqualValues(t, limit, entries())
	for _, n := range []int{1, 2, 1000, limit - 1, limit} {
		r, err := b.TakeAt(t.Context(), testStart.Add(time.Second), "user", n)
		require.NoError(t, err)
		require.Equal(t, refusedResult(limit, 0, span-time.Second+time.Duration(n-1)*us, span-time.Second+(limit-1)*us), r.Result, "Take(%d)", n)
	}
	later := testStart.Add(2 * span)
	for i, want := range []int64{2501, 1502, 503, 4, 5} {
		r, err := b.TakeAt(t.Context(), later, "user", 1)
		require.NoError(t, err)
		require.Equal(t, allowedResult(limit, limit-1-i, span), r.Result, "expired entries do not count, deleted or not")
		require.Equal(t, want, entries())
	}
}

// Entries of tokens that were given back are deleted too, so taking and giving back forever does
// not make the log longer.
func TestALogOfRefundsStaysShort(t *testing.T) {
	direct := newClient(t, sharedServer())
	b := newLimiter(connect(t), "refunds", fleet.SlidingLog{Limit: 5, Window: time.Hour}, errorOnOutage)
	for range 200 {
		requireTake(t, taken, b.Take, "user", 2)
		require.NoError(t, b.Refund(t.Context(), time.Now(), "user", 2))
		require.LessOrEqual(t, direct.ZCard(t.Context(), b.StateKeys("user")[0]).Val(), int64(6))
	}
	requireTake(t, taken, b.Take, "user", 5)
	requireTake(t, refused, b.Take, "user", 1)
}

// Tokens that were given back are not confused with expired ones when the window is made longer.
func TestRefundAmongExpiredEntries(t *testing.T) {
	l := newLog(t, 4, time.Second)
	require.True(t, l.take(0, 1))
	require.True(t, l.take(500*ms, 1))
	require.True(t, l.take(900*ms, 2))
	l.refund(1200*ms, 1) // the oldest that counts: that of 500 ms
	require.Equal(t, 2, l.left(1200*ms))
	l.set(4, 10*time.Second)
	require.Zero(t, l.left(1200*ms), "the window includes deleted entries")
	require.Equal(t, 2, l.left(10_100*ms), "the window no longer includes them")
	require.Equal(t, 4, l.left(10_900*ms))
}
