package alert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A wall clock that is set back cannot be had in a test, but what it leads to can: an
// alert that began later than now.
func TestAnAlertDoesNotBeginInTheFuture(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := newTrack(&Rule{Name: "x"}, "")
	later.memory = memory{state: inactive, activeAt: now.Add(time.Hour), firedAt: now.Add(time.Hour), resolvedAt: now.Add(time.Minute)}
	a := later.alert(now)
	require.Equal(t, [3]time.Time{now, now, now}, [3]time.Time{a.ActiveAt, a.StartsAt, a.EndsAt})

	before := newTrack(&Rule{Name: "x"}, "")
	before.memory = memory{state: firing, activeAt: now.Add(-time.Hour), firedAt: now.Add(-time.Minute)}
	a = before.alert(now)
	require.Equal(t, [3]time.Time{now.Add(-time.Hour), now.Add(-time.Minute), {}}, [3]time.Time{a.ActiveAt, a.StartsAt, a.EndsAt})
}
