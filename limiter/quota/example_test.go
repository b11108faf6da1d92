package quota_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
)

// A customer has a quota per month, which begins at midnight in the zone of the contract.
func Example() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	monthly := quota.New(quota.Config{Limit: 3, Every: quota.Month, Zone: berlin})
	at := time.Date(2026, time.March, 31, 23, 0, 0, 0, berlin)
	for range 4 {
		r := monthly.Get("customer").TakeAt(at, 1)
		fmt.Println(r.OK, r.Remaining, r.RetryAfter)
	}
	fmt.Println(monthly.Get("customer").TakeAt(at.Add(time.Hour), 1).Remaining)
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 1h0m0s
	// 2
}

func ExampleGroup() {
	daily := quota.New(quota.Config{Limit: 100, Every: quota.Day})
	daily.Get("a").Take(60)
	fmt.Println(daily.Get("a").Take(60).OK, daily.Get("b").Take(60).OK)
	daily.Forget("a")
	fmt.Println(daily.Get("a").Take(60).OK)
	// Output:
	// false true
	// true
}

// The cost of a request is known only afterwards.
func ExampleKeyed() {
	tokens := quota.New(quota.Config{Limit: 1000, Every: quota.Week})
	r := limiter.Reserve(tokens.Get(""), 400)
	r.Settle(1200)
	fmt.Println(tokens.Get("").Take(1).OK)
	// Output: false
}

func ExampleConfig() {
	c := quota.Config{Every: "year"}
	fmt.Println(c.Validate())
	// Output:
	// quota: Limit is 0, must be between 1 and 2147483647
	// quota: Every is "year", must be "day", "week" or "month"
}

func ExamplePeriod() {
	weekly := quota.New(quota.Config{Limit: 1, Every: quota.Week})
	sunday := time.Date(2026, time.July, 19, 23, 59, 59, 0, time.UTC)
	fmt.Println(weekly.Get("").TakeAt(sunday, 1).ResetAfter)
	// Output: 1s
}

// The quotas survive a restart.
func ExampleGroup_Open() {
	dir, err := os.MkdirTemp("", "quota")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for range 2 {
		monthly := quota.New(quota.Config{Limit: 10, Every: quota.Month})
		if err := monthly.Open(filepath.Join(dir, "quota")); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(monthly.Get("a").Take(4).Remaining)
		if err := monthly.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 6
	// 2
}
