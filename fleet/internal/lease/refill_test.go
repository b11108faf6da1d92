package lease_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

// given is a reservation and the tokens that were not given back.
type given struct {
	*limiter.Reservation
	n int
}

// server is a limiter behind a slow network. It records the requests it receives.
type server struct {
	limiter.Limiter
	way func() time.Duration // how long a message takes
	err error

	mu      sync.Mutex
	given   []given
	asked   []int // the tokens of each request; negative for a refund
	granted int   // less what was given back
	before  func(n int)
}

func newServer(l limiter.Limiter) *server {
	return &server{Limiter: l, way: func() time.Duration { return 0 }, before: func(int) {}}
}

func (s *server) Take(ctx context.Context, _ string, n int) (limiter.Result, error) {
	time.Sleep(s.way())
	s.before(n)
	s.mu.Lock()
	s.asked = append(s.asked, n)
	err, r := s.err, limiter.Result{}
	if err == nil {
		taken := limiter.Reserve(s.Limiter, n)
		if r = taken.Result; r.OK {
			s.granted += n
			s.given = append(s.given, given{taken, n})
		}
	}
	s.mu.Unlock()
	if decided, ok := ctx.Value(decidedKey{}).(*time.Time); ok {
		*decided = time.Now()
	}
	time.Sleep(s.way())
	return r, err
}

// allGranted returns the tokens that were granted, less those that were given back.
func (s *server) allGranted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

func (s *server) Refund(_ context.Context, _ string, n int, _ time.Duration) error {
	time.Sleep(s.way())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, -n)
	s.granted -= n
	for n > 0 && len(s.given) > 0 { // the latest tokens
		last := &s.given[len(s.given)-1]
		back := min(n, last.n)
		last.Refund(back)
		last.n -= back
		if n -= back; last.n == 0 {
			s.given = s.given[:len(s.given)-1]
		}
	}
	return s.err
}

// requests returns the requests since the last call.
func (s *server) requests() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// decidedKey is the context key of the time at which the server decided.
type decidedKey struct{}

func TestRefillTakesNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		for range 24 {
			_, _, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
		}
		s.requests()
		_, held, _, err := p.Take(t.Context(), "k", 8) // six of the ten tokens are left
		require.NoError(t, err)
		require.False(t, held)
		require.Equal(t, []int{8 + 4}, s.requests())
	})
}

func TestCloseDuringARefillLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		fillLease(t, p, "k")
		s.way = func() time.Duration { return 100 * time.Millisecond }
		allowed := s.allGranted() // all of them have been handed out
		go func() { _, _, _, _ = p.Take(t.Context(), "k", 1) }()
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, p.Close(t.Context()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, allowed+1, s.allGranted())
	})
}

func TestNothingIsHeldAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		s.err = errors.New("unavailable")
		_, held, _, err := p.Take(t.Context(), "k", 1)
		require.True(t, held, "held tokens can be taken")
		require.NoError(t, err)
		s.requests()
		_, held, _, err = p.Take(t.Context(), "k", 1)
		require.False(t, held)
		require.ErrorIs(t, err, s.err)
		require.Len(t, s.requests(), 1, "a request is not repeated after an error")
		s.err = nil
		fillLease(t, p, "k")
	})
}

func TestPanicOfTheServerBlocksNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		_, _, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		s.way = func() time.Duration { return time.Millisecond }
		var once atomic.Bool
		s.before = func(n int) {
			if n > 1 && once.CompareAndSwap(false, true) {
				panic("the server's")
			}
		}
		var g sync.WaitGroup
		g.Go(func() {
			time.Sleep(time.Millisecond / 2)
			_, _, _, err := p.Take(t.Context(), "k", 1) // waits for the refill
			if err != nil {
				t.Error(err)
			}
		})
		require.Panics(t, func() { _, _, _, _ = p.Take(t.Context(), "k", 1) })
		g.Wait()
	})
}

func TestHeldTokensAreHandedOutAfterALargerRequestWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(1, 40))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		s.Limiter.Take(35)
		r, _, _, err := p.Take(t.Context(), "k", 5)
		require.NoError(t, err)
		require.False(t, r.OK)
		r, held, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.True(t, held)
		require.True(t, r.OK)
		require.Zero(t, r.RetryAfter)
	})
}

func TestCancellationDuringARefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		_, _, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		s.way = func() time.Duration { return time.Second }
		go func() { _, _, _, _ = p.Take(t.Context(), "k", 1) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, _, err = p.Take(ctx, "k", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
	})
}

// The tokens of a refill are not lost if the caller that began it leaves.
func TestCallerThatLeavesARefillLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		_, _, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		s.way = func() time.Duration { return 200 * time.Millisecond }
		s.requests()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		_, _, _, err = p.Take(ctx, "k", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Millisecond, time.Since(began))
		time.Sleep(500 * time.Millisecond)
		asked := s.requests()
		require.Len(t, asked, 1)
		require.Greater(t, asked[0], 1)
		for range asked[0] {
			_, held, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.True(t, held)
		}
		require.Empty(t, s.requests())
	})
}
