// Package scope has the instrumentation scope of the packages of this module.
package scope

import "runtime/debug"

// Name is the import path of the module.
const Name = "github.com/weir-go/weir/exporters/otelmetric"

// Version returns the version of the module in the running program, or "" if it is unknown.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionIn(info)
}

func versionIn(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path != Name {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		return m.Version
	}
	return ""
}
