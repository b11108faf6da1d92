package read_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

func TestALaterDuplicateIsSkippedWhileTheFirstIsLive(t *testing.T) {
	early, late := shows(), shows(slow("a", 1))
	s := newSet(t, early, late)
	readAll(t, s)
	early.show(slow("a", 2), slow("b", 3)) // read first, and yet the newer series
	for n := range 3 {
		got, own := readAll(t, s)
		require.Equal(t, metrics{lineA: 1, lineB: 3}, got)
		require.Equal(t, metrics{"skipped_samples{duplicate}": float64(n + 1)}, own, "one per reading, counted in that reading")
	}
	late.show()
	got, _ := readAll(t, s)
	require.Equal(t, metrics{lineA: 2, lineB: 3}, got)
}

func TestLaterSeriesWithFaultsAreSkipped(t *testing.T) {
	good := slow("a", 1)
	source := shows(good)
	s := newSet(t, source)
	want := metrics{}
	for _, c := range []struct {
		reason string
		bad    *stat.Series
	}{
		{"malformed", &stat.Series{Instrument: instrument.BreakerCalls}},
		{"malformed", nil},
		{"unknown", queueLength.Series()},
		{"duplicate", instrument.ExporterSourcePanics.Series()},
	} {
		source.show(point{c.bad, 1}, good, point{c.bad, 2})
		want["skipped_samples{"+c.reason+"}"] += 2
		got, own := readAll(t, s)
		require.Equal(t, metrics{lineA: 1}, got)
		require.Equal(t, want, own)
	}
}

func TestASourceThatPanicsHidesNoOther(t *testing.T) {
	log := captureLog(t)
	bad := shows(slow("a", 1))
	s := newSet(t, bad, shows(slow("b", 2)))
	bad.broken = errors.New("lost its lock")
	for n := range 3 {
		got, own := readAll(t, s)
		require.Equal(t, metrics{lineA: 1, lineB: 2}, got, "series before the panic count")
		require.Equal(t, metrics{"source_panics{}": float64(n + 1)}, own)
	}
	require.Equal(t, 1, strings.Count(log.String(), "lost its lock"), "logged once: %s", log)
	require.Contains(t, log.String(), "source=*read_test.fake")
	bad.points = nil
	got, _ := readAll(t, s)
	require.Equal(t, metrics{lineB: 2}, got)
}

func TestASourceThatPanicsFromTheStartIsNotAnError(t *testing.T) {
	captureLog(t)
	got, own := readAll(t, newSet(t, &fake{broken: "always"}, shows(slow("b", 2))))
	require.Equal(t, metrics{lineB: 2}, got)
	require.Equal(t, metrics{"source_panics{}": 2}, own, "once in New, once now")
}

func TestCountersThatBackendsDoNotAcceptAreSkipped(t *testing.T) {
	source := shows(slow("a", math.NaN()), slow("b", -1), slow("c", math.Inf(1)), slow("d", 0))
	got, own := readAll(t, newSet(t, source))
	require.Equal(t, metrics{"weir.breaker.slow_calls{d,}": 0}, got)
	require.Equal(t, metrics{"skipped_samples{malformed}": 6}, own, "three in New, three now")
}

// readOnce reads the set and requires that it shows each of the series once, with its value.
func readOnce(t *testing.T, s *read.Set[string], want metrics) {
	got := map[string][]float64{}
	for name, value := range s.Observe {
		got[name] = append(got[name], value)
	}
	for name, value := range want {
		if !slices.Equal(got[name], []float64{value}) {
			t.Errorf("%s = %v, want %v once", name, got[name], value)
		}
	}
}

// TestConcurrentReadingsAndChanges reads the set concurrently with changes of every kind. No reading may show a
// series twice or with the value of another, or miss one that is always shown.
func TestConcurrentReadingsAndChanges(t *testing.T) {
	stable := shows()
	want := metrics{}
	for n := range 37 {
		p := slow(fmt.Sprint("stable", n), float64(n))
		stable.points = append(stable.points, p)
		want[line(p.series)] = p.value
	}
	flicker := shows(slow("flicker", 1))
	kept := flicker.points
	s := newSet(t, stable, stable, flicker)
	var readers, changers sync.WaitGroup
	done := make(chan struct{})
	for n := range 2 {
		changers.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					return
				default:
				}
				guest := shows(slow(fmt.Sprint("guest", n), 1))
				if err := s.Add(guest); err != nil {
					t.Errorf("Add = %v", err)
				}
				flicker.show(kept[:k%2]...)
				s.Remove(guest)
			}
		})
		readers.Go(func() {
			for range 500 {
				readOnce(t, s, want)
			}
		})
	}
	readers.Wait()
	close(done)
	changers.Wait()
	flicker.show()
	got, own := readAll(t, s)
	require.Equal(t, want, got)
	require.Empty(t, slices.Collect(maps.Keys(own)))
}
