package limiter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// start is when the given times of these tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// step is a request at a time after the start. What is wanted reads like "ok", "refused", or, where the
// numbers matter too, "ok 3/5 reset 2s" and "refused 0/5 retry 1s reset 5s".
type step struct {
	at   time.Duration
	n    int
	want string
}

// take runs the steps against a limiter.
func take(t *testing.T, l limiter.TimedLimiter, steps ...step) {
	t.Helper()
	for i, s := range steps {
		got := show(l.TakeAt(start.Add(s.at), s.n))
		if !strings.Contains(s.want, "/") {
			got, _, _ = strings.Cut(got, " ")
		}
		require.Equal(t, s.want, got, "step %d: Take(%d) at %s", i, s.n, s.at)
	}
}

func show(r limiter.Result) string {
	word, retry := "ok", ""
	if !r.OK {
		word, retry = "refused", " retry "+span(r.RetryAfter)
	}
	return fmt.Sprintf("%s %d/%d%s reset %s", word, r.Remaining, r.Limit, retry, span(r.ResetAfter))
}

func span(d time.Duration) string {
	if d == limiter.Never {
		return "never"
	}
	return d.String()
}

// bucket makes a token bucket on given times.
func bucket(r limiter.Rate, burst int) *limiter.TokenBucket {
	return limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: r, Burst: burst}, start)
}

// offer makes n requests for one permit, evenly over a span from the start on, and returns how many were admitted.
func offer(l limiter.TimedLimiter, n int, over time.Duration) (admitted int) {
	for i := range n {
		if l.TakeAt(start.Add(time.Duration(float64(over)/float64(n)*float64(i))), 1).OK {
			admitted++
		}
	}
	return admitted
}
