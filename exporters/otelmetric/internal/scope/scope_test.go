package scope

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionOfTheBuild(t *testing.T) {
	requiring := func(m debug.Module) []*debug.Module {
		m.Path = Name
		return []*debug.Module{{Path: "example.com/other", Version: "v9.9.9"}, &m}
	}
	for want, deps := range map[string][]*debug.Module{
		"v1.2.3": requiring(debug.Module{Version: "v1.2.3"}),
		"v1.3.0": requiring(debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.3.0"}}),
		"":       requiring(debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "../otelmetric"}}),
	} {
		require.Equal(t, want, versionIn(&debug.BuildInfo{Deps: deps}))
	}
	require.Empty(t, versionIn(&debug.BuildInfo{}))
}
