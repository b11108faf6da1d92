package admin

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/adminhook"
)

// The timer of an action may fire while a second action replaces the first. Then the function of
// the timer gets the lock after the second action.
func TestATimerThatFiredLateChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{Authorize: func(*http.Request, Action) (string, error) { return "alice", nil }})
		require.NoError(t, err)
		value := "before"
		var number adminhook.Number
		setting := number.Setting(func() any { return value }, func(v any) { value = v.(string) })
		to := func(v string) []change { return []change{{"", setting, v}} }
		of := new(target)
		x := &of.override
		of.busy.Lock()
		x.begin(h, of, overrides, to("first"), "", time.Hour)
		late := x.begun
		x.begin(h, of, overrides, to("second"), "", 2*time.Hour)
		of.busy.Unlock()
		x.end(h, of, overrides, late)
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
