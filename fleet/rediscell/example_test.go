package rediscell_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

func ExampleReplyOf() {
	refused := limiter.Result{Limit: 16, RetryAfter: 1300 * time.Millisecond, ResetAfter: 31300 * time.Millisecond}
	reply := rediscell.ReplyOf(refused)
	fmt.Println(reply.Limited, reply.RetryAfter)
	fmt.Println(reply.Integers())
	// Output:
	// true 2
	// [1 16 0 2 32]
}

func ExampleReply() {
	reply := rediscell.Reply{Limited: true, Limit: 16, RetryAfter: 2, ResetAfter: 32}
	fmt.Println(reply.Integers())
	// Output: [1 16 0 2 32]
}
