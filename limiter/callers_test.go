package limiter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// callers holds several callers that wait for one limiter in a synctest bubble.
type callers struct {
	t     *testing.T
	l     limiter.WaitLimiter
	began time.Time
	all   sync.WaitGroup
	mu    sync.Mutex
	log   []arrival
}

// arrival is the result of a wait, and the time of the result.
type arrival struct {
	who string
	at  time.Duration
	err error
}

func newCallers(t *testing.T, l limiter.WaitLimiter) *callers {
	return &callers{t: t, l: l, began: time.Now()}
}

// start starts a caller and returns once it waits in the queue or has returned.
func (l *callers) start(ctx context.Context, who string, n int) {
	l.all.Go(func() {
		err := l.l.Wait(ctx, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.log = append(l.log, arrival{who, time.Since(l.began), err})
	})
	synctest.Wait()
}

// servedFirst returns the result of the named caller, or nil if another caller was served earlier.
// Callers that are served at the same time may report in any order.
func (l *callers) servedFirst(who string) *arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.log {
		if a.who == who && a.at <= l.log[0].at {
			return &a
		}
	}
	return nil
}

// requireResults waits for all callers and compares their results, in order.
func (l *callers) requireResults(want ...arrival) {
	l.t.Helper()
	l.all.Wait()
	require.Equal(l.t, want, l.log)
}
