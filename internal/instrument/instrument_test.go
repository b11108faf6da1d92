package instrument_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

func TestInstrumentsAreWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^weir(\.[a-z][a-z_]*)+$`)
	attr := regexp.MustCompile(`^(weir(\.[a-z]+)+|error\.type)$`)
	share := regexp.MustCompile(`(_ratio|\.coverage)$`)
	seen := map[string]bool{}
	for _, i := range instrument.All() {
		require.Regexp(t, name, i.Name)
		require.False(t, seen[i.Name], "%s is defined twice", i.Name)
		seen[i.Name] = true
		require.True(t, strings.HasSuffix(i.Help, "."), "%s: help %q does not end with a period", i.Name, i.Help)
		require.Contains(t, []stat.Kind{stat.Counter, stat.UpDown, stat.Gauge, stat.Distribution}, i.Kind, i.Name)
		require.Regexp(t, `^(|s|1|\{[a-z]+\})$`, i.Unit, i.Name)
		require.Equal(t, i.Unit == "1", share.MatchString(i.Name), "%s: ratios have unit 1 and end in _ratio; a coverage is one", i.Name)
		for _, a := range i.Attrs {
			require.Regexp(t, attr, a, i.Name)
		}
		require.Equal(t, i.Kind == stat.Distribution, len(i.Bounds) > 0, i.Name)
	}
}

// These are rules of OpenTelemetry's semantic conventions, in the section on naming. A name is not
// the namespace of another name. The name of an up-down counter is singular. No name ends in its
// unit or in total. Only names of things that are counted are plurals. Prometheus keeps the end
// count for histograms.
func TestNamesFollowOpenTelemetrysRules(t *testing.T) {
	names := map[string]bool{}
	for _, i := range instrument.All() {
		names[i.Name] = true
		for _, a := range i.Attrs {
			names[a] = true
		}
	}
	for name := range names {
		for parent := name; strings.Contains(parent, "."); {
			parent = parent[:strings.LastIndexByte(parent, '.')]
			require.False(t, names[parent], "%s is a metric or an attribute, and the namespace of %s", parent, name)
		}
	}
	for _, i := range instrument.All() {
		last := i.Name[strings.LastIndexByte(i.Name, '.')+1:]
		counted := strings.HasPrefix(i.Unit, "{")
		plural := strings.HasSuffix(last, "s") && !strings.HasSuffix(last, "ss")
		require.False(t, plural && i.Kind == stat.UpDown, "%s: an up-down counter is no plural", i.Name)
		require.False(t, plural && !counted, "%s: a plural, but its unit is %q", i.Name, i.Unit)
		require.NotRegexp(t, `(_|\.)(total|count|seconds|ms|bytes)$`, i.Name)
	}
}

func TestEveryDefinitionIsInAll(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	definition := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += (counter|upDown|gauge|durations)\(`)
	defined := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		defined += len(definition.FindAll(text, -1))
	}
	require.Len(t, instrument.All(), defined)
}
