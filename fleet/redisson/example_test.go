package redisson_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/redisson"
)

var shared redistest.Package

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// server returns the address of a Redis for the examples.
var server = sync.OnceValue(func() *redistest.Server { return redistest.Start(&shared) })

func exampleLink() *fleet.Link {
	client := redis.NewClient(&redis.Options{Addr: server().Addr(), ContextTimeoutEnabled: true})
	shared.Cleanup(func() { _ = client.Close() })
	link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	return link
}

// In Redisson:
//
//	limiter.trySetRate(RateType.OVERALL, 2, Duration.ofMinutes(1))
//	limiter.setRate(RateType.OVERALL, 3, Duration.ofMinutes(1))
func Example() {
	ctx := context.Background()
	partner := fleet.NewLimiter("package", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{fleet.SlidingLog{Limit: 2, Window: time.Minute}}, OnOutage: fleet.FailError,
	})
	for range 3 {
		r, err := partner.Take(ctx, "acme", 1)
		fmt.Println(r.OK, err)
	}

	if err := redisson.SetRate(ctx, partner, "acme", 3, time.Minute); err != nil {
		fmt.Println(err)
	}
	for range 2 {
		r, err := partner.Take(ctx, "acme", 1)
		fmt.Println(r.OK, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// true <nil>
	// false <nil>
}

// Each process has 2 requests per minute of its own.
func ExamplePerClient() {
	link := exampleLink()
	for _, process := range []string{"a", "b"} {
		limit := redisson.PerClient(fleet.SlidingLog{Limit: 2, Window: time.Minute}, process)
		calls := fleet.NewLimiter("calls", fleet.Config{Link: link, Limits: []fleet.Limit{limit}, OnOutage: fleet.FailClosed})
		for range 3 {
			r, err := calls.Take(context.Background(), "partner", 1)
			fmt.Println(process, r.OK, err)
		}
	}
	// Output:
	// a true <nil>
	// a true <nil>
	// a false <nil>
	// b true <nil>
	// b true <nil>
	// b false <nil>
}

func ExampleSetRate() {
	partner := fleet.NewLimiter("partner", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{fleet.SlidingLog{Limit: 10, Window: time.Minute}}, OnOutage: fleet.FailError,
	})
	ctx := context.Background()
	_, _ = partner.Take(ctx, "acme", 3)
	err := redisson.SetRate(ctx, partner, "acme", 20, time.Minute) // for all nodes
	r, _ := partner.Take(ctx, "acme", 0)
	fmt.Println(r.Remaining, err)
	// Output: 17 <nil>
}
