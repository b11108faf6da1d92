package scale

import (
	"strconv"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// sources varies the number of breakers that an exporter reads.
func (t timer) sources() Experiment {
	return Experiment{
		File: "sources", Title: "One scrape of n breakers", X: "sources", Y: "ns per scrape", Sizes: powersOfTen(1, 10_000),
		Lines: []Line{{Name: "read.Set.Observe", Says: fit.Linear, Cost: t.scrape}},
		Why: "A scrape reads each of a breaker's series once. " +
			"An exporter caches its form of a series by the address of the series, so it formats nothing twice.",
	}
}

func (t timer) scrape(sources int) (float64, error) {
	var all []stat.Source
	for i := range sources {
		all = append(all, breaker.New(strconv.Itoa(i), breaker.Config{}))
	}
	set, err := read.New(func(s *stat.Series) *stat.Series { return s }, all...)
	if err != nil {
		return 0, err
	}
	return t.quickest(func(n int) (right int) {
		for range n {
			figures := 0
			for range set.Observe {
				figures++
			}
			if figures > sources {
				right++
			}
		}
		return right
	})
}
