package dashboard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/dashboard"
)

func TestPathOfTheAdminHandler(t *testing.T) {
	for _, path := range []string{"admin/", "/admin", "//evil.example/", "https://evil.example/", "/a?b/", "/a#b/", "/a b/", `/"><script>/`, `/\evil.example/`} {
		err := dashboard.Config{Admin: path}.Validate()
		require.ErrorContains(t, err, "must be a path that begins and ends with a slash", path)
	}
	for _, path := range []string{"/", "/admin/weir/"} {
		page, err := dashboard.New(dashboard.Config{Admin: path})
		require.NoError(t, err)
		require.Contains(t, get(page, "/").Body.String(), `data-admin="`+path+`"`)
	}
	page, err := dashboard.New(dashboard.Config{})
	require.NoError(t, err)
	require.Contains(t, get(page, "/").Body.String(), `data-admin=""`, "the page is read-only")
}
