package prom_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

const (
	sampleLineA = `weir_breaker_slow_calls_total{weir_breaker_name="a",weir_group_key=""} 1`
	sampleLineB = `weir_breaker_slow_calls_total{weir_breaker_name="b",weir_group_key=""} 2`
)

func TestSourcesComeAndGo(t *testing.T) {
	a, b := newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2))
	c, r := register(t)
	require.Empty(t, scrape(t, r))

	require.NoError(t, c.Add(a, b))
	require.Equal(t, []string{sampleLineA, sampleLineB}, scrape(t, r))
	require.NoError(t, c.Add(a), "a source that was added before is ignored")
	require.Equal(t, []string{sampleLineA, sampleLineB}, scrape(t, r))

	c.Remove(a, newFakeSource())
	require.Equal(t, []string{sampleLineB}, scrape(t, r))

	require.NoError(t, c.Add(newFakeSource(slowCallsPoint("a", 1))), "the name can be used again")
	require.Equal(t, []string{sampleLineA, sampleLineB}, scrape(t, r))
	require.True(t, r.Unregister(c))
}

func TestAddRefusesAllOrNothing(t *testing.T) {
	c, r := register(t, newFakeSource(slowCallsPoint("a", 1)))
	for want, bad := range map[string]stat.Source{
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}`: newFakeSource(slowCallsPoint("a", 9)),
		`stat: the instrument shop.queue.length is not one of those that the set was made with`: newFakeSource(
			point{queueLength.Series(), 1}),
		`stat: source 2 of 2 is nil`: nil,
	} {
		require.ErrorContains(t, c.Add(newFakeSource(slowCallsPoint("b", 2)), bad), want)
		require.Equal(t, []string{sampleLineA}, scrape(t, r))
	}
	require.Zero(t, skippedSamples(t, r, "duplicate"), "refused sources are not counted as skipped")
}

func TestSecondCollectorIsRefusedAndCanBeAddedToTheFirst(t *testing.T) {
	_, r := register(t, newFakeSource(slowCallsPoint("a", 1)))
	err := r.Register(prom.NewCollector())
	there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
	require.True(t, ok, "got %v", err)
	require.NoError(t, there.ExistingCollector.(*prom.Collector).Add(newFakeSource(slowCallsPoint("b", 2))))
	require.Equal(t, []string{sampleLineA, sampleLineB}, scrape(t, r))
}

// A scrape that is not read to its end delays neither sources nor other scrapes.
func TestScraperThatDoesNotReadDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeSource(slowCallsPoint("a", 1))
		source.spreads = []seriesHistogram{{instrumentNamed("weir.breaker.call.duration").Series("a", ""), stat.Histogram{}}}
		c, r := register(t, source)
		stuck := make(chan prometheus.Metric)
		go c.Collect(stuck)
		synctest.Wait()
		source.setPoints(slowCallsPoint("b", 2)) // takes the lock that the source was read under
		require.Contains(t, scrape(t, r), sampleLineB)
		require.NoError(t, c.Add(newFakeSource(slowCallsPoint("c", 3))))
		for range 1 + 4 + 1 {
			<-stuck
		}
	})
}

// Scrapes run concurrently with each other and with changes of every kind. None may fail, export a
// series twice, or export the value of another series.
func TestConcurrentScrapesAndChanges(t *testing.T) {
	stable := breakerSource("stable")
	flicker := newFakeSource(slowCallsPoint("flicker", 1))
	c, r := register(t, stable, stable, flicker)
	var scrapers, changers sync.WaitGroup
	done := make(chan struct{})
	for n := range 2 {
		changers.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					return
				default:
				}
				guest := newFakeSource(slowCallsPoint(fmt.Sprintf("guest%d", n), float64(n)))
				require.NoError(t, c.Add(guest))
				if rand.IntN(2) == 0 {
					flicker.setPoints()
				} else {
					flicker.setPoints(slowCallsPoint("flicker", 1))
				}
				c.Remove(guest)
			}
		})
		scrapers.Go(func() {
			for range 200 {
				families, err := r.Gather()
				if err != nil || countSeries(families, "stable") != 40 {
					t.Errorf("%d series of the stable source, error %v", countSeries(families, "stable"), err)
					return
				}
			}
		})
	}
	scrapers.Wait()
	close(done)
	changers.Wait()
	require.Len(t, scrape(t, r), 40+len(flicker.points))
}
