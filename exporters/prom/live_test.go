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
	lineA = `weir_breaker_slow_calls_total{weir_breaker_name="a",weir_group_key=""} 1`
	lineB = `weir_breaker_slow_calls_total{weir_breaker_name="b",weir_group_key=""} 2`
)

func TestSourcesComeAndGo(t *testing.T) {
	a, b := shows(slow("a", 1)), shows(slow("b", 2))
	c, r := register(t)
	require.Empty(t, scrape(t, r))

	require.NoError(t, c.Add(a, b))
	require.Equal(t, []string{lineA, lineB}, scrape(t, r))
	require.NoError(t, c.Add(a), "a source that was added before is ignored")
	require.Equal(t, []string{lineA, lineB}, scrape(t, r))

	c.Remove(a, shows())
	require.Equal(t, []string{lineB}, scrape(t, r))

	require.NoError(t, c.Add(shows(slow("a", 1))), "the name can be used again")
	require.Equal(t, []string{lineA, lineB}, scrape(t, r))
	require.True(t, r.Unregister(c))
}

func TestAddRefusesAllOrNothing(t *testing.T) {
	c, r := register(t, shows(slow("a", 1)))
	for want, bad := range map[string]stat.Source{
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}`: shows(slow("a", 9)),
		`stat: the instrument shop.queue.length is not one of those that the set was made with`:            shows(point{queueLength.Series(), 1}),
		`stat: source 2 of 2 is nil`: nil,
	} {
		require.ErrorContains(t, c.Add(shows(slow("b", 2)), bad), want)
		require.Equal(t, []string{lineA}, scrape(t, r))
	}
	require.Zero(t, skipped(t, r, "duplicate"), "refused sources are not counted as skipped")
}

func TestSecondCollectorIsRefusedAndCanBeAddedToTheFirst(t *testing.T) {
	_, r := register(t, shows(slow("a", 1)))
	err := r.Register(prom.NewCollector())
	there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
	require.True(t, ok, "got %v", err)
	require.NoError(t, there.ExistingCollector.(*prom.Collector).Add(shows(slow("b", 2))))
	require.Equal(t, []string{lineA, lineB}, scrape(t, r))
}

// A scrape that is not read to its end delays neither sources nor other scrapes.
func TestScraperThatDoesNotReadDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := shows(slow("a", 1))
		source.spreads = []spread{{instrumentNamed("weir.breaker.call.duration").Series("a", ""), stat.Histogram{}}}
		c, r := register(t, source)
		stuck := make(chan prometheus.Metric)
		go c.Collect(stuck)
		synctest.Wait()
		source.show(slow("b", 2)) // takes the lock that the source was read under
		require.Contains(t, scrape(t, r), lineB)
		require.NoError(t, c.Add(shows(slow("c", 3))))
		for range 1 + 4 + 1 {
			<-stuck
		}
	})
}

// Scrapes run concurrently with each other and with changes of every kind. None may fail, export a
// series twice, or export the value of another series.
func TestConcurrentScrapesAndChanges(t *testing.T) {
	stable := breakerLike("stable")
	flicker := shows(slow("flicker", 1))
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
				guest := shows(slow(fmt.Sprintf("guest%d", n), float64(n)))
				require.NoError(t, c.Add(guest))
				if rand.IntN(2) == 0 {
					flicker.show()
				} else {
					flicker.show(slow("flicker", 1))
				}
				c.Remove(guest)
			}
		})
		scrapers.Go(func() {
			for range 200 {
				families, err := r.Gather()
				if err != nil || count(families, "stable") != 40 {
					t.Errorf("%d series of the stable source, error %v", count(families, "stable"), err)
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
