package admin

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The timer of an action may fire while a second action replaces the first. Then the function of
// the timer gets the lock after the second action.
func TestATimerThatFiredLateChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{Authorize: func(*http.Request, Action) (string, error) { return "alice", nil }})
		require.NoError(t, err)
		value := "before"
		a := property[string]{
			what: "value", now: func() string { return value }, set: func(v, _ string) { value = v },
			text: func(v string) string { return v },
		}
		of := new(target)
		x := &of.override
		of.busy.Lock()
		x.begin(h, of, a, "first", "", time.Hour)
		late := x.begun
		x.begin(h, of, a, "second", "", 2*time.Hour)
		of.busy.Unlock()
		x.end(h, of, a, late)
		requireValue := func(want string, acts int) {
			of.busy.Lock()
			defer of.busy.Unlock()
			h.mu.Lock()
			defer h.mu.Unlock()
			require.Equal(t, want, value)
			require.Len(t, of.acts, acts)
		}
		requireValue("second", 0)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		requireValue("before", 1)
	})
}
