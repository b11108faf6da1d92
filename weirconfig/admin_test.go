package weirconfig_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

// actionSender returns a function that sends an action to the objects of a set, and returns the
// status.
func actionSender(t *testing.T, set *weirconfig.Set) func(action, body string) int {
	t.Helper()
	everybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
	ops, err := admin.New(admin.Config{Authorize: everybody}, set)
	require.NoError(t, err)
	return func(action, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+action, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ops.ServeHTTP(w, r)
		return w.Code
	}
}

// A set is a source of package admin. What an update adds can be acted on at once.
func TestAdminKnowsTheObjectsOfTheLatestUpdate(t *testing.T) {
	file, err := weirconfig.Parse("w.yaml", []byte(`gates: {payments: {}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	act := actionSender(t, set)
	require.Equal(t, http.StatusOK, act("drain?name=payments", ""))
	require.Equal(t, http.StatusNotFound, act("drain?name=search", ""))
	require.NoError(t, update(t, set, `gates: {payments: {}, search: {}}`))
	require.Equal(t, http.StatusOK, act("drain?name=search", ""))
}

// A gate that is gone from the file refuses calls as if it was forced open. This is no override, so
// a timed action does not restore it at its end.
func TestATimedActionOnARemovedObjectEnds(t *testing.T) {
	for _, kind := range []string{"gates", "groups"} {
		for _, back := range []string{"before the end", "after the end"} {
			t.Run(kind+" "+back, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					both := kind + `: {payments: {}, search: {}}`
					file, err := weirconfig.Parse("w.yaml", []byte(both))
					require.NoError(t, err)
					set, err := weirconfig.New(file, weirconfig.Config{})
					require.NoError(t, err)
					gate, target := set.Gate, "payments"
					if kind == "groups" {
						gate = func(name string) *weir.Gate { return set.Group(name).Get("k") }
						target += "&key=k"
					}
					payments := gate("payments")
					act := actionSender(t, set)
					require.NoError(t, update(t, set, kind+`: {search: {}}`))
					require.Equal(t, http.StatusOK, act("drain?name="+target, `{"for":"1m"}`))
					if back == "before the end" {
						require.NoError(t, update(t, set, both))
						require.Equal(t, breaker.ForcedOpen, payments.Breaker().State(), "the action has not ended")
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if back == "after the end" {
						require.ErrorContains(t, payments.Run(t.Context(), succeed), "was removed")
						require.NoError(t, update(t, set, both))
					}
					require.Equal(t, breaker.Closed, payments.Breaker().State())
					require.NoError(t, payments.Run(t.Context(), succeed))
				})
			})
		}
	}
}
