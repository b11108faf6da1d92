package limiter_test

import (
	"fmt"
	"sync/atomic"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// tickets is a limiter that counts its requests as the limiters of this package do.
type tickets struct {
	left     atomic.Int64
	requests *limiter.Requests
}

func (t *tickets) Take(n int) limiter.Result {
	left := t.left.Add(int64(-n))
	r := limiter.Result{OK: left >= 0, Limit: 100, Remaining: int(max(left, 0)), RetryAfter: limiter.Never}
	if r.OK {
		r.RetryAfter = 0
	} else {
		t.left.Add(int64(n))
	}
	t.requests.Record(r, n)
	return r
}

func (t *tickets) Observe(yield func(*stat.Series, float64) bool) { t.requests.Observe(yield) }

func ExampleRequests() {
	t := &tickets{requests: limiter.NewRequests("tickets", false)}
	t.left.Store(3)
	fmt.Println(t.Take(2).OK, t.Take(2).OK)
	fmt.Printf("%+v\n", t.requests.Stats())
	// Output:
	// true false
	// {Allowed:1 Waited:0 Refused:1 Cancelled:0 Shadowed:0 Near:2 Waiting:0}
}
