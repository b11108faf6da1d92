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
