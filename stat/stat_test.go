package stat_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
)

func TestCatalogueIsWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^weir(\.[a-z][a-z_]*)+$`)
	attr := regexp.MustCompile(`^(weir(\.[a-z]+)+|error\.type)$`)
	share := regexp.MustCompile(`(_ratio|\.coverage)$`)
	seen := map[string]bool{}
	for _, i := range stat.Catalogue() {
		require.Regexp(t, name, i.Name)
		require.False(t, seen[i.Name], "%s stands there twice", i.Name)
		seen[i.Name] = true
		require.True(t, strings.HasSuffix(i.Help, "."), "%s: help %q is no sentence", i.Name, i.Help)
		require.Contains(t, []stat.Kind{stat.Counter, stat.UpDown, stat.Gauge, stat.Distribution}, i.Kind, i.Name)
		require.Regexp(t, `^(|s|1|\{[a-z]+\})$`, i.Unit, i.Name)
		require.Equal(t, i.Unit == "1", share.MatchString(i.Name), "%s: ratios have unit 1 and end in _ratio; a coverage is one", i.Name)
		for _, a := range i.Attrs {
			require.Regexp(t, attr, a, i.Name)
		}
		require.Equal(t, i.Kind == stat.Distribution, len(i.Bounds) > 0, i.Name)
	}
}

func TestSeriesNeedsAValueForEachAttribute(t *testing.T) {
	require.PanicsWithValue(t, "stat: weir.breaker.state takes 3 attribute values, got 1", func() {
		stat.BreakerState.Series("payments")
	})
}

func TestSeriesIDsTellSeriesApart(t *testing.T) {
	id := func(i *stat.Instrument, values ...string) string { return i.Series(values...).ID() }
	one, twin := id(stat.BreakerState, "a", "open", ""), id(stat.BreakerState, "a", "open", "")
	require.Equal(t, one, twin)
	ids := map[string]bool{
		one: true,
		id(stat.BreakerTransitions, "a", "open", ""): true,
		id(stat.BreakerState, "a", "closed", ""):     true,
		id(stat.BreakerState, "a\xffopen", "", ""):   true,
	}
	require.Len(t, ids, 4)
}

func TestSeriesValuesAreUTF8(t *testing.T) {
	require.Equal(t, []string{"a\uFFFDb\"\n", ""}, stat.BreakerSlowCalls.Series("a\xfe\xffb\"\n", "").Values)
}

func TestASeriesKnowsWhenItWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := stat.BreakerSlowCalls.Series("a", "")
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(s.Created))
		require.True(t, s.Created.Equal(began))
	})
}

func TestKindsHaveNames(t *testing.T) {
	require.Equal(t, "counter, up-down counter, gauge, distribution, kind 0",
		fmt.Sprintf("%v, %v, %v, %v, %v", stat.Counter, stat.UpDown, stat.Gauge, stat.Distribution, stat.Kind(0)))
}

func TestLongKeysAreShortenedAndStayApart(t *testing.T) {
	long := strings.Repeat("key", 1<<18)
	seen := map[string]bool{}
	for _, v := range []string{
		long, long + "a", long + "b", long[1:], strings.Repeat("é", 1000), "x" + strings.Repeat("é", 1000), strings.Repeat("\xff", 1<<20),
		strings.Repeat("a\xff", 400), strings.Repeat("x", 1025), strings.Repeat("x", 1024), strings.Repeat("€", 341) + "x", strings.Repeat("€", 341) + "xx",
	} {
		series := stat.BreakerSlowCalls.Series(v, v)
		require.Equal(t, strings.ToValidUTF8(v, "\uFFFD"), series.Values[0], "a name is the program's")
		got := series.Values[1]
		require.LessOrEqual(t, len(got), 1024)
		require.True(t, utf8.ValidString(got))
		require.False(t, seen[got], "%.20q has the name of another", v)
		seen[got] = true
		require.Equal(t, got, stat.BreakerSlowCalls.Series("", v).Values[1], "the same in every process")
		require.Equal(t, got, stat.BreakerSlowCalls.Series("", got).Values[1])
		if utf8.ValidString(v) {
			require.True(t, strings.HasPrefix(got, v[:1000]), "its beginning")
		}
	}
}
