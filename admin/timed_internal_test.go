package admin

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat/view"
)

// The timer of an action may fire while a second action replaces the first. Then the function of
// the timer gets the lock after the second action.
func TestATimerThatFiredLateChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{Authorize: func(*http.Request, Action) (string, error) { return "alice", nil }})
		require.NoError(t, err)
		value := "before"
		to := func(v string) []change {
			return []change{{"", &settableValue{value: &value}, []view.Setting{{Name: "state", Value: v}}}}
		}
		of := new(target)
		x := &of.override
		of.busy.Lock()
		require.NoError(t, x.begin(h, of, overrides, to("first"), "", time.Hour))
		late := x.begun
		require.NoError(t, x.begin(h, of, overrides, to("second"), "", 2*time.Hour))
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

// settableValue is a setting without versions.
type settableValue struct{ value *string }

func (s *settableValue) Settings() []view.Setting {
	return []view.Setting{{Name: "state", Value: *s.value}}
}

func (s *settableValue) Set(_ string, to ...view.Setting) ([]view.Setting, error) {
	*s.value = to[0].Value
	return to, nil
}

func (s *settableValue) Restore(_ string, _, earlier []view.Setting) bool {
	*s.value = earlier[0].Value
	return true
}
