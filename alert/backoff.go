package alert

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between the attempts of a notifier.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second // below any sensible repeat, so that a recovered receiver hears within one
	longestWait  = time.Hour        // the most that a receiver may ask for
	refusedPause = time.Second      // where the next one was refused before, too, or none is left
)

// backoff is "full jitter": each pause is drawn evenly between zero and a bound
// that doubles with every failure. Source: "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015.
type backoff struct{ failures int }

func (b *backoff) reset() { b.failures = 0 }

// pause returns how long to wait after one more failure, and no less than asked for.
func (b *backoff) pause(asked time.Duration) time.Duration {
	bound := min(firstPause<<min(b.failures, 10), longestPause)
	b.failures++
	return max(rand.N(bound), min(asked, longestWait))
}

// sleep returns the context's error if it is done before the time has passed.
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
