package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
)

// The bucket adds 100 tokens a second, one every 10ms. It holds 20, so that many can be taken at
// once.
func ExampleTokenBucket() {
	bucket := fleet.NewLimiter("bucket", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(100), Burst: 20}},
		OnOutage: fleet.FailClosed,
	})

	r, err := bucket.Take(context.Background(), "user:42", 15)
	fmt.Println(r.OK, r.Remaining, r.ResetAfter, err)
	// Output: true 5 150ms <nil>
}

func ExampleFixedWindow() {
	link := exampleLink()
	daily := fleet.NewLimiter("daily", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.FixedWindow{Limit: 1000, Window: 24 * time.Hour}},
		OnOutage: fleet.FailOpen,
	})

	r, err := daily.Take(context.Background(), "tenant:7", 400)
	fmt.Println(r.OK, r.Remaining, err)
	r, err = daily.Take(context.Background(), "tenant:7", 601)
	fmt.Println(r.OK, r.Remaining, err)
	// Output:
	// true 600 <nil>
	// false 600 <nil>
}

// Each tenant has 1000 calls per day, as its users in New York see days.
func ExampleCalendarQuota() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	daily := fleet.NewLimiter("calls per day", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{fleet.CalendarQuota{Limit: 1000, Every: quota.Day, Zone: zone}},
		OnOutage: fleet.FailOpen,
	})

	r, err := daily.Take(context.Background(), "tenant:7", 400)
	fmt.Println(r.OK, r.Remaining, err)
	r, err = daily.Take(context.Background(), "tenant:7", 601)
	fmt.Println(r.OK, r.Remaining, r.RetryAfter < 25*time.Hour, err)
	// Output:
	// true 600 <nil>
	// false 600 true <nil>
}

func ExampleSlidingWindow() {
	link := exampleLink()
	logins := fleet.NewLimiter("logins", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.SlidingWindow{Limit: 3, Window: time.Minute}},
		OnOutage: fleet.FailClosed,
	})

	for range 4 {
		r, _ := logins.Take(context.Background(), "203.0.113.9", 1)
		fmt.Print(r.OK, " ")
	}
	// Output: true true true false
}

func ExampleSlidingLog() {
	link := exampleLink()
	ctx := context.Background()
	partner := fleet.NewLimiter("partner", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.SlidingLog{Limit: 10, Window: time.Minute}},
		OnOutage: fleet.FailError,
	})

	_, _ = partner.Take(ctx, "acme", 3)
	r, _ := partner.Take(ctx, "acme", 0) // takes nothing
	fmt.Println(r.Remaining)
	// Output: 7
}

// Limits and policies can be read from a file or an environment variable.
func ExampleLimits() {
	var c struct {
		Limits   fleet.Limits
		OnOutage fleet.OnOutage
	}
	err := json.Unmarshal([]byte(`{"Limits": "token-bucket 10/s burst 20, shared token-bucket 1000/s", "OnOutage": "fail-open"}`), &c)
	fmt.Println(len(c.Limits), c.OnOutage, err)

	text, err := c.Limits.MarshalText()
	fmt.Println(string(text), err)
	// Output:
	// 2 fail-open <nil>
	// token-bucket 10/s burst 20, shared token-bucket 1000/s <nil>
}

// Validate names all invalid fields of a configuration.
func ExampleLimit() {
	c := fleet.Config{Link: exampleLink(), OnOutage: fleet.FailClosed, Limits: []fleet.Limit{
		fleet.TokenBucket{Rate: limiter.PerSecond(10)},
		fleet.FixedWindow{Limit: 100, Window: time.Minute},
		fleet.SlidingWindow{Limit: 0, Window: time.Hour},
	}}
	fmt.Println(c.Validate())
	// Output: fleet: Limit is 0, must lie between 1 and 2147483647
}

// Each user has 2 requests per minute, and all users of a tenant have 3.
func ExampleShared() {
	api := fleet.NewLimiter("shared", fleet.Config{
		Link: exampleLink(), OnOutage: fleet.FailClosed, Limits: []fleet.Limit{
			fleet.SlidingLog{Limit: 2, Window: time.Minute},
			fleet.Shared{
				By:    func(key string) string { tenant, _, _ := strings.Cut(key, "/"); return tenant },
				Limit: fleet.SlidingLog{Limit: 3, Window: time.Minute},
			},
		},
	})
	for _, user := range []string{"acme/ann", "acme/ann", "acme/ann", "acme/bob", "acme/bob", "shop/eve"} {
		r, err := api.Take(context.Background(), user, 1)
		fmt.Println(user, r.OK, err)
	}
	// Output:
	// acme/ann true <nil>
	// acme/ann true <nil>
	// acme/ann false <nil>
	// acme/bob true <nil>
	// acme/bob false <nil>
	// shop/eve true <nil>
}
