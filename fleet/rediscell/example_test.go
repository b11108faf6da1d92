package rediscell_test

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
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
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

// A program that sends CL.THROTTLE user:42 2 30 60 can ask a limiter instead: two extra tokens at
// once, and 30 in 60 seconds.
func Example() {
	replies := fleet.NewLimiter("package", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{rediscell.Limit(2, 30, time.Minute)}, OnOutage: fleet.FailOpen,
	})
	for range 4 {
		reply, err := rediscell.Throttle(context.Background(), replies, "user:42", 1)
		fmt.Println(reply.Limited, reply.Limit, reply.Remaining, err)
	}
	// Output:
	// false 3 2 <nil>
	// false 3 1 <nil>
	// false 3 0 <nil>
	// true 3 0 <nil>
}

// The numbers of redis-cell's CL.THROTTLE user:42 15 30 60.
func ExampleThrottle() {
	replies := fleet.NewLimiter("reply", fleet.Config{
		Link: exampleLink(), Limits: []fleet.Limit{rediscell.Limit(15, 30, time.Minute)}, OnOutage: fleet.FailOpen,
	})
	reply, err := rediscell.Throttle(context.Background(), replies, "user:42", 1)
	fmt.Println(reply, err)
	// Output: {false 16 15 -1 2} <nil>
}

func ExampleReplyOf() {
	refused := limiter.Result{Limit: 16, RetryAfter: 1300 * time.Millisecond, ResetAfter: 31300 * time.Millisecond}
	reply := rediscell.ReplyOf(refused)
	fmt.Println(reply.Limited, reply.RetryAfter)
	fmt.Println(reply)
	// Output:
	// true 2
	// {true 16 0 2 32}
}

func ExampleReply() {
	reply := rediscell.Reply{Limited: true, Limit: 16, RetryAfter: 2, ResetAfter: 32}
	fmt.Println(reply)
	// Output: {true 16 0 2 32}
}
