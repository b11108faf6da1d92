package weirconfig_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/weirconfig"
)

// A set is a source of package admin. What an update adds can be acted on at once.
func TestAdminKnowsTheObjectsOfTheLatestUpdate(t *testing.T) {
	file, err := weirconfig.Parse("w.yaml", []byte(`gates: {payments: {}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	everybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
	ops, err := admin.New(admin.Config{Authorize: everybody}, set)
	require.NoError(t, err)
	drain := func(name string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/drain?name="+name, http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ops.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusOK, drain("payments"))
	require.Equal(t, http.StatusNotFound, drain("search"))
	require.NoError(t, update(t, set, `gates: {payments: {}, search: {}}`))
	require.Equal(t, http.StatusOK, drain("search"))
}
