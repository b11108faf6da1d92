package limiter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// start is the time at which the tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// step is a request at a time after the start, with the expected answer: "ok" or "refused" or, with
// the numbers, "ok 3/5 reset 2s" or "refused 0/5 retry 1s reset 5s".
type step struct {
	at   time.Duration
	n    int
	want string
}

// runSteps runs the steps on a limiter.
func runSteps(t *testing.T, l limiter.TimedLimiter, steps ...step) {
	t.Helper()
	for i, s := range steps {
		got := resultText(l.TakeAt(start.Add(s.at), s.n))
		if !strings.Contains(s.want, "/") {
			got, _, _ = strings.Cut(got, " ")
		}
		require.Equal(t, s.want, got, "step %d: Take(%d) at %s", i, s.n, s.at)
	}
}

func resultText(r limiter.Result) string {
	word, retry := "ok", ""
	if !r.OK {
		word, retry = "refused", " retry "+durationText(r.RetryAfter)
	}
	return fmt.Sprintf("%s %d/%d%s reset %s", word, r.Remaining, r.Limit, retry, durationText(r.ResetAfter))
}

func durationText(d time.Duration) string {
	if d == limiter.Never {
		return "never"
	}
	return d.String()
}

// newBucket returns a token bucket for TakeAt.
func newBucket(r limiter.Rate, burst int) *limiter.TokenBucket {
	return limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: r, Burst: burst}, start)
}

// offerEvenly makes n requests for one token, evenly over a span, and returns how many were
// allowed.
func offerEvenly(l limiter.TimedLimiter, n int, over time.Duration) (allowed int) {
	for i := range n {
		if l.TakeAt(start.Add(time.Duration(float64(over)/float64(n)*float64(i))), 1).OK {
			allowed++
		}
	}
	return allowed
}
