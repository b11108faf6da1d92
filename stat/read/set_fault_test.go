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
	early, late := newFakeSource(), newFakeSource(slowCallsPoint("a", 1))
	s := newSet(t, early, late)
	readAll(t, s)
	// read first, and yet the newer series
	early.setPoints(slowCallsPoint("a", 2), slowCallsPoint("b", 3))
	for n := range 3 {
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 1, slowCallsB: 3}, got)
		require.Equal(t, metrics{"skipped_samples{duplicate}": float64(n + 1)}, own, "one per reading, counted in that reading")
	}
	late.setPoints()
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 2, slowCallsB: 3}, got)
}

func TestLaterSeriesWithFaultsAreSkipped(t *testing.T) {
	good := slowCallsPoint("a", 1)
	source := newFakeSource(good)
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
		source.setPoints(point{c.bad, 1}, good, point{c.bad, 2})
		want["skipped_samples{"+c.reason+"}"] += 2
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 1}, got)
		require.Equal(t, want, own)
	}
}

func TestASourceThatPanicsHidesNoOther(t *testing.T) {
	log := captureLog(t)
	bad := newFakeSource(slowCallsPoint("a", 1))
	s := newSet(t, bad, newFakeSource(slowCallsPoint("b", 2)))
	bad.broken = errors.New("lost its lock")
	for n := range 3 {
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 1, slowCallsB: 2}, got, "series before the panic count")
		require.Equal(t, metrics{"source_panics{}": float64(n + 1)}, own)
	}
	require.Equal(t, 1, strings.Count(log.String(), "lost its lock"), "logged once: %s", log)
	require.Contains(t, log.String(), "source=*read_test.fakeSource")
	bad.points = nil
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsB: 2}, got)
}

func TestASourceThatPanicsFromTheStartIsNotAnError(t *testing.T) {
	captureLog(t)
	got, own := readAll(t, newSet(t, &fakeSource{broken: "always"}, newFakeSource(slowCallsPoint("b", 2))))
	require.Equal(t, metrics{slowCallsB: 2}, got)
	require.Equal(t, metrics{"source_panics{}": 2}, own, "once in New, once now")
}

func TestCountersThatBackendsDoNotAcceptAreSkipped(t *testing.T) {
	source := newFakeSource(slowCallsPoint("a", math.NaN()), slowCallsPoint("b", -1), slowCallsPoint("c", math.Inf(1)), slowCallsPoint("d", 0))
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

// TestConcurrentReadingsAndChanges reads the set concurrently with changes of every kind. No
// reading may show a series twice or with the value of another, or miss one that is always shown.
func TestConcurrentReadingsAndChanges(t *testing.T) {
	stable := newFakeSource()
	want := metrics{}
	for n := range 37 {
		p := slowCallsPoint(fmt.Sprint("stable", n), float64(n))
		stable.points = append(stable.points, p)
		want[seriesText(p.series)] = p.value
	}
	flicker := newFakeSource(slowCallsPoint("flicker", 1))
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
				guest := newFakeSource(slowCallsPoint(fmt.Sprint("guest", n), 1))
				if err := s.Add(guest); err != nil {
					t.Errorf("Add = %v", err)
				}
				flicker.setPoints(kept[:k%2]...)
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
	flicker.setPoints()
	got, own := readAll(t, s)
	require.Equal(t, want, got)
	require.Empty(t, slices.Collect(maps.Keys(own)))
}
