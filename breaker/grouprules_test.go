package breaker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// A group in the state Shadow reports what a real group does, also for keys that were evicted.
func TestGroupInShadowReportsWhatARealGroupDoes(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: 2 * time.Minute, Probes: 1}
	live := newEvictableGroup(3, c)
	c.Force = breaker.Shadow
	var told recorder
	shadow := newEvictableGroup(3, told.attachTo(c))
	refused := int64(0)
	for minute := range 60 {
		u := after(time.Duration(minute) * time.Minute)
		o := breaker.Failure
		if minute%20 > 10 {
			o = breaker.Success
		}
		for i := range 4 {
			a, b := live.GetAt(u, "a"), shadow.GetAt(u, "a")
			p, err := a.AllowAt(u)
			q, none := b.AllowAt(u)
			require.NoError(t, none)
			// the new keys do not evict a while its call is in flight
			addKeys(live, u, 6)
			addKeys(shadow, u, 6)
			if err != nil {
				refused++
			} else {
				p.RecordAt(u, o)
			}
			q.RecordAt(u, o)
			require.Equal(t, a.StateAt(u) == breaker.Open, shadowIsOpen(&told, u), "minute %d, call %d", minute, i)
		}
	}
	require.Positive(t, refused)
	require.Positive(t, live.Stats().Evictions)
}

// shadowIsOpen reports whether the breaker of the key a would be open if it were not in shadow
// mode. That is so if it would have opened and the cooldown after that is not over.
func shadowIsOpen(told *recorder, u time.Time) bool {
	for _, c := range slices.Backward(told.changes()) {
		if c.Key == "a" {
			return u.Sub(c.At) < 2*time.Minute
		}
	}
	return false
}
