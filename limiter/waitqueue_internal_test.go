package limiter

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// countingSource has one token after a second. It counts what the queue asks.
type countingSource struct {
	from               time.Time
	acquires, predicts atomic.Int64
}

func (s *countingSource) answer() Result {
	left := max(time.Second-time.Since(s.from), 0)
	return Result{OK: left == 0, RetryAfter: left, Limit: 1}
}

func (s *countingSource) acquire(n int) (Result, taken) {
	s.acquires.Add(1)
	r := s.answer()
	return r, takenBy(r, 0, n)
}

func (s *countingSource) predict(int64, int) Result {
	s.predicts.Add(1)
	return s.answer()
}

// A gate asks its limiter before it waits. The queue asks once more, when the call has joined: a
// token may have been given back in between. It asks again only when there is a token.
func TestTheQueueAsksOnceBeforeACallOfAGateSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countingSource{from: time.Now()}
		var q waitQueue
		w := inside{}.NewCall(new(Requests)).(*waiter)
		w.gate.refused = s.answer()
		var got taken
		var err error
		done := make(chan struct{})
		go func() {
			got, err = q.waitInQueue(t.Context(), s, 1, math.MaxInt64, w)
			close(done)
		}()
		synctest.Wait()
		require.EqualValues(t, 1, s.acquires.Load())
		require.Zero(t, s.predicts.Load())
		<-done
		require.NoError(t, err)
		require.Equal(t, 1, got.n)
		require.EqualValues(t, 2, s.acquires.Load())
		require.Zero(t, s.predicts.Load())
	})
}
