package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

// quota is a limit kept by another service.
type quota struct {
	left int
	down bool
}

func (q *quota) Take(_ context.Context, n int) (limiter.Result, error) {
	switch {
	case q.down:
		return limiter.Result{}, errors.New("quota: no answer")
	case n > q.left:
		return limiter.Result{Limit: 100, Remaining: q.left, RetryAfter: time.Minute}, nil
	}
	q.left -= n
	return limiter.Result{OK: true, Limit: 100, Remaining: q.left}, nil
}

// A refusal is a Result. An error means that there is no decision.
func ExampleRemote() {
	q := &quota{left: 1}
	var remote limiter.Remote = q

	for range 3 {
		r, err := remote.Take(context.Background(), 1)
		fmt.Println(r.OK, r.RetryAfter, err)
		q.down = r.RetryAfter > 0
	}
	// Output:
	// true 0s <nil>
	// false 1m0s <nil>
	// false 0s quota: no answer
}
