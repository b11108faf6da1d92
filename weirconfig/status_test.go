package weirconfig_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/weirconfig"
)

// metricsOf returns the metrics of a set itself, by their names and last attributes.
func metricsOf(set *weirconfig.Set) map[string]float64 {
	values := map[string]float64{}
	for s, v := range set.Observe {
		values[strings.Join(append([]string{s.Instrument.Name}, s.Values[1:]...), " ")] = v
	}
	return values
}

func requireUpdates(t *testing.T, set *weirconfig.Set, applied, refused, isRefused int, since time.Time) {
	t.Helper()
	require.Equal(t, map[string]float64{
		"weir.config.updates applied": float64(applied), "weir.config.updates refused": float64(refused),
		"weir.config.refused": float64(isRefused), "weir.config.applied.timestamp": float64(since.Unix()),
	}, metricsOf(set))
}

func TestARefusedFileIsAMetricAndANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, made := newSet(t, `groups: {a: {}}`, weirconfig.Config{}), time.Now()
		require.Empty(t, set.Notice())
		requireUpdates(t, set, 0, 0, 0, made)
		time.Sleep(time.Hour)
		require.Error(t, update(t, set, "groups:\n  a: {max_keys: 7}"))
		requireUpdates(t, set, 0, 1, 1, made)
		require.Equal(t, "The configuration was refused at 2000-01-01T01:00:00Z. That of 2000-01-01T00:00:00Z stays in effect.\n"+
			"w.yaml:2: groups.a: max_keys has changed: weirconfig: needs a restart", set.Notice())
		require.NoError(t, update(t, set, `groups: {a: {}, b: {}}`))
		requireUpdates(t, set, 1, 1, 0, time.Now())
		require.Empty(t, set.Notice())
	})
}

func TestWatchMakesABadFileAMetricAndANotice(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	synctest.Test(t, func(t *testing.T) {
		const good = `gates: {a: {}}`
		w := watchFile(t, good)
		made := time.Now()
		w.write(t, "gates:\n  a: {burst: \"${SECRET}\"}")
		time.Sleep(time.Hour)
		requireUpdates(t, w.Set, 0, 1, 1, made)
		require.Contains(t, w.Notice(), w.path+":2: gates.a: burst is a value from ${SECRET} that is not shown")
		require.NotContains(t, w.Notice(), "hunter2")
		require.Zero(t, w.countLogs("hunter2"))
		synctest.Wait() // Watch is about to read the file too
		w.write(t, good)
		time.Sleep(4*time.Second + 1)
		require.Empty(t, w.Notice(), "the file is as it was at first")
		requireUpdates(t, w.Set, 1, 1, 0, time.Now().Add(-1))

		require.NoError(t, os.Remove(w.path))
		time.Sleep(time.Hour)
		require.Contains(t, w.Notice(), "no such file")
		require.Equal(t, 2.0, metricsOf(w.Set)["weir.config.updates refused"])
		synctest.Wait()
		w.write(t, good)
		time.Sleep(4*time.Second + 1)
		require.Empty(t, w.Notice())
		requireUpdates(t, w.Set, 2, 2, 0, time.Now().Add(-1))
	})
}

// An editor may remove the file for a moment when it writes it.
func TestWatchDoesNotReportAFileThatIsGoneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchFile(t, `gates: {a: {}}`)
		time.Sleep(3 * time.Second)
		for range 5 { // the file is gone at every second look
			require.NoError(t, os.Remove(w.path))
			time.Sleep(2 * time.Second)
			w.write(t, `gates: {a: {}}`)
			time.Sleep(2 * time.Second)
		}
		require.Zero(t, metricsOf(w.Set)["weir.config.updates refused"])
		require.Zero(t, w.countLogs("cannot be read"))
	})
}

func TestTheInstrumentsOfASetEqualThoseOfTheCore(t *testing.T) {
	known, err := read.New(func(s *stat.Series) *stat.Instrument { return s.Instrument })
	require.NoError(t, err)
	set, n := newSet(t, `gates: {a: {}}`, weirconfig.Config{}), 0
	for series := range set.Observe {
		require.Contains(t, known.Instruments(), series.Instrument)
		n++
	}
	require.Equal(t, 4, n)
	require.NoError(t, known.Add(set.Sources()...))
}
