package guards_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/guards"
)

func TestNamesAreUniqueAndConfigsGiveReasons(t *testing.T) {
	var names []string
	for _, m := range guards.All() {
		require.NotContains(t, names, m.Name)
		require.Greater(t, len(m.Config), 10, m.Name)
		names = append(names, m.Name)
	}
	require.Equal(t, guards.Weir, names[0])
	for _, l := range guards.Left() {
		require.NotContains(t, names, l.Name)
		require.Greater(t, len(l.Reason), 10, l.Name)
	}
}

func TestQuickIsAPartOfAll(t *testing.T) {
	var all, quick []string
	for _, m := range guards.All() {
		all = append(all, m.Name)
	}
	for _, m := range guards.Quick() {
		require.Contains(t, all, m.Name)
		quick = append(quick, m.Name)
	}
	require.Less(t, len(quick), len(all))
	require.True(t, slices.Contains(quick, guards.Weir))
}
