package alert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A test cannot set the wall clock back. An alert that began later than now is the same case.
func TestAlertTimesAreNotInTheFuture(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := newTracker(&Rule{Name: "x"}, "")
	later.progress = progress{phase: inactive, activeAt: now.Add(time.Hour), firedAt: now.Add(time.Hour), resolvedAt: now.Add(time.Minute)}
	a := later.alert(now)
	require.Equal(t, [3]time.Time{now, now, now}, [3]time.Time{a.ActiveAt, a.StartsAt, a.EndsAt})

	before := newTracker(&Rule{Name: "x"}, "")
	before.progress = progress{phase: firing, activeAt: now.Add(-time.Hour), firedAt: now.Add(-time.Minute)}
	a = before.alert(now)
	require.Equal(t, [3]time.Time{now.Add(-time.Hour), now.Add(-time.Minute), {}}, [3]time.Time{a.ActiveAt, a.StartsAt, a.EndsAt})
}
