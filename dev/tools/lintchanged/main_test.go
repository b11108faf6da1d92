package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

func TestPackagesAreGroupedByTheInnermostModule(t *testing.T) {
	list := []modules.Module{{Dir: "."}, {Dir: "exporters/prom"}, {Dir: "tests"}}
	files := []string{
		"gate.go", "group.go", "breaker/breaker.go", "exporters/prom/prom.go", "exporters/prom/mixin/main.go",
		"exporters/dashboard/page.go", "tests/go.mod", "README.md", "breaker/testdata/x.go", "gone/gone.go",
	}
	got := packagesByModule(list, files, func(dir string) bool { return dir != "gone" })
	require.Equal(t, map[string][]string{
		".":              {".", "./breaker", "./exporters/dashboard"},
		"exporters/prom": {".", "./mixin"},
	}, got)
}
