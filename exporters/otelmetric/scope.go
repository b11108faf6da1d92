package otelmetric

import (
	"runtime/debug"
)

// scopeName is the import path of this package, and of its module.
const scopeName = "github.com/weir-go/weir/exporters/otelmetric"

// scopeVersion is the version of this module in the running program, and empty
// where the program does not say.
func scopeVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionIn(info)
}

func versionIn(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path != scopeName {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		return m.Version
	}
	return ""
}
