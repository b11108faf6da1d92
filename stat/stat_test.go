package stat_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

func TestSeriesNeedsAValueForEachAttribute(t *testing.T) {
	require.PanicsWithValue(t, "stat: weir.breaker.state takes 3 attribute values, got 1", func() {
		instrument.BreakerState.Series("payments")
	})
}

func TestDifferentSeriesHaveDifferentIDs(t *testing.T) {
	id := func(i *stat.Instrument, values ...string) string { return i.Series(values...).ID() }
	one, twin := id(instrument.BreakerState, "a", "open", ""), id(instrument.BreakerState, "a", "open", "")
	require.Equal(t, one, twin)
	ids := map[string]bool{
		one: true,
		id(instrument.BreakerTransitions, "a", "open", ""): true,
		id(instrument.BreakerState, "a", "closed", ""):     true,
		id(instrument.BreakerState, "a\xffopen", "", ""):   true,
	}
	require.Len(t, ids, 4)
}

func TestSeriesValuesAreUTF8(t *testing.T) {
	require.Equal(t, []string{"a\uFFFDb\"\n", ""}, instrument.BreakerSlowCalls.Series("a\xfe\xffb\"\n", "").Values)
}

func TestSeriesCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := instrument.BreakerSlowCalls.Series("a", "")
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(s.Created))
		require.True(t, s.Created.Equal(began))
	})
}

func TestLongKeysAreShortenedAndStayDistinct(t *testing.T) {
	long := strings.Repeat("key", 1<<18)
	seen := map[string]bool{}
	for _, v := range []string{
		long, long + "a", long + "b", long[1:], strings.Repeat("é", 1000), "x" + strings.Repeat("é", 1000), strings.Repeat("\xff", 1<<20),
		strings.Repeat("a\xff", 400), strings.Repeat("x", 1025), strings.Repeat("x", 1024), strings.Repeat("€", 341) + "x", strings.Repeat("€", 341) + "xx",
	} {
		series := instrument.BreakerSlowCalls.Series(v, v)
		require.Equal(t, strings.ToValidUTF8(v, "\uFFFD"), series.Values[0], "a name is not shortened")
		got := series.Values[1]
		require.LessOrEqual(t, len(got), 1024)
		require.True(t, utf8.ValidString(got))
		require.False(t, seen[got], "%.20q has the short form of another key", v)
		seen[got] = true
		require.Equal(t, got, instrument.BreakerSlowCalls.Series("", v).Values[1], "the same in every process")
		require.Equal(t, got, instrument.BreakerSlowCalls.Series("", got).Values[1])
		if utf8.ValidString(v) {
			require.True(t, strings.HasPrefix(got, v[:1000]), "the beginning is kept")
		}
	}
}
