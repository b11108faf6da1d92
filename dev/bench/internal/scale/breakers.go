package scale

import (
	"context"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/stat"
)

// breakers varies the number of members of a group of breakers.
func (t timer) breakers() Experiment {
	return Experiment{
		File: "breakers", Title: "A group of n breakers", X: "members", Y: "ns", Sizes: powersOfTen(1, 100_000),
		Lines: []Line{
			{Name: "Get + Run", Says: fit.Constant, Cost: t.getAndRun},
			{Name: "Group.Observe", Says: fit.Linear, Cost: t.observeGroup},
		},
		Why: "Get reads the map of one of up to 256 shards, under a lock that readers share. " +
			"A member takes 1.3 KB or more, so a thousand members fill the cache of a core. From there on, each call fetches several cache lines from slower memory. " +
			"Observe sums the members that have no series of their own, so it reads all of them.",
	}
}

// group returns a group with the given number of members, each called once.
func group(members int) *breaker.Group[int] {
	g := breaker.NewGroup[int]("bench", breaker.GroupConfig{MaxKeys: 2*members + 1000})
	for key := range members {
		_ = g.Get(key).Run(context.Background(), succeed)
	}
	return g
}

func succeed(context.Context) error { return nil }

func (t timer) getAndRun(members int) (float64, error) {
	g, ctx := group(members), context.Background()
	return t.quickest(measure.Walk(members, measure.Far, func(key int) bool { return g.Get(key).Run(ctx, succeed) == nil }))
}

func (t timer) observeGroup(members int) (float64, error) { return t.observe(group(members)) }

// observe measures the cost of reading all metrics of a source once.
func (t timer) observe(source stat.Source) (float64, error) {
	return t.quickest(func(n int) (right int) {
		for range n {
			figures := 0
			for range source.Observe {
				figures++
			}
			if figures > 0 {
				right++
			}
		}
		return right
	})
}
