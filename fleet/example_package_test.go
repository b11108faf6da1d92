package fleet_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// Each user has six requests per hour on any of three machines. A machine
// that cannot reach Redis allows a third of them.
func Example() {
	machine := func(addr string) *fleet.Limiter {
		client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
		shared.Cleanup(func() { _ = client.Close() })
		link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: time.Second})
		if err != nil {
			panic(err) // the server is too old or denies access; if it is unavailable, err is nil
		}
		return fleet.NewLimiter("users of the fleet", fleet.Config{
			Link:     link,
			Limits:   []fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(6, time.Hour), Burst: 6}},
			OnOutage: fleet.FailLocal, Share: 1.0 / 3,
		})
	}
	ask := func(name string, users *fleet.Limiter) {
		r, err := users.Take(context.Background(), "user:42", 1)
		if err != nil {
			fmt.Println(name, err) // no decision
			return
		}
		fmt.Println(name, r.OK, r.From)
	}

	a, b := machine(sharedServer().Addr()), machine(sharedServer().Addr())
	for range 3 {
		ask("a", a)
		ask("b", b)
	}
	ask("b", b)

	c := machine("127.0.0.1:1") // no Redis there
	for range 3 {
		ask("c", c)
	}
	// Output:
	// a true server
	// b true server
	// a true server
	// b true server
	// a true server
	// b true server
	// b false server
	// c true outage
	// c true outage
	// c false outage
}
