package lease_test

import (
	"context"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// server is a limiter behind a slow network. It records the requests it receives.
type server struct {
	limiter.Limiter
	way func() time.Duration // how long a message takes
	err error

	mu      sync.Mutex
	asked   []int // of each question how many tokens; refunds are below 0
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
		if r = s.Limiter.Take(n); r.OK {
			s.granted += n
		}
	}
	s.mu.Unlock()
	if decided, ok := ctx.Value(decidedKey{}).(*time.Time); ok {
		*decided = time.Now()
	}
	time.Sleep(s.way())
	return r, err
}

func (s *server) Refund(_ context.Context, _ string, n int, _ time.Duration) error {
	time.Sleep(s.way())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, -n)
	s.granted -= n
	s.Limiter.Refund(n)
	return s.err
}

// questions returns the requests since the last call.
func (s *server) questions() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// decidedKey is the context key of the time at which the server decided.
type decidedKey struct{}
