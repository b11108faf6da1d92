package alert

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between the attempts of a notifier.
const (
	firstPause    = time.Second
	maxPause      = 30 * time.Second // shorter than any sensible Repeat
	maxAskedPause = time.Hour        // the longest pause that a receiver may ask for
	// after a refusal, if the next alert was refused before or none is left.
	refusedPause = time.Second
)

// backoff computes pauses with "full jitter": each pause is drawn uniformly from zero to a bound
// that doubles with every failure. Source: "Exponential Backoff And Jitter", AWS Architecture Blog,
// 2015.
type backoff struct{ failures int }

func (b *backoff) reset() { b.failures = 0 }

// next counts one more failure and returns the pause after it. The pause is at least asked, or
// maxAskedPause if asked is longer.
func (b *backoff) next(asked time.Duration) time.Duration {
	bound := min(firstPause<<min(b.failures, 10), maxPause)
	b.failures++
	return max(rand.N(bound), min(asked, maxAskedPause))
}

// sleep waits for d. If ctx is done before, it returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
