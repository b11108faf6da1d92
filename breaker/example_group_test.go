package breaker_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
)

func ExampleGroup_All() {
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{})
	for shard := range 4 {
		shards.Get(shard)
	}
	shards.Get(3).OpenFor(time.Minute)
	for shard, b := range shards.All() {
		if b.Tripped() {
			fmt.Println("shard", shard, "is open")
		}
	}
	// Output: shard 3 is open
}

func ExampleGroupConfig() {
	c := breaker.GroupConfig{Breaker: breaker.Config{FailureRate: 2}, MaxKeys: -5}
	fmt.Println(c.Validate())
	// Output:
	// breaker: Breaker: breaker: FailureRate is 2, must be above 0 and at most 1, or Off
	// breaker: MaxKeys is -5, must be at least 1
}

// A key for which the group has no room is unguarded, and counted.
func ExampleGroup_Observe() {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxKeys: 1})
	hosts.Get("a.example").OpenFor(time.Minute)
	fmt.Println(hosts.Get("b.example").State())
	for series, value := range hosts.Observe {
		if strings.HasPrefix(series.Instrument.Name, "weir.breaker.group.") {
			fmt.Println(series.Instrument.Name, value)
		}
	}
	// Output:
	// forced_closed
	// weir.breaker.group.size 1
	// weir.breaker.group.evictions 0
	// weir.breaker.group.unguarded 1
	// weir.breaker.group.prevented_openings 0
}
