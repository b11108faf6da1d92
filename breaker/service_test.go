package breaker_test

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/breaker"
)

// service answers after a while. Callers wait until their deadlines.
type service struct {
	b     *breaker.Breaker
	began time.Time
	takes func(at time.Duration) time.Duration // how long a call takes at a time since began
	call  func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error

	group   sync.WaitGroup
	mu      sync.Mutex
	refused map[time.Duration]int // the refused calls, by the timeout of the caller
}

func newService(c breaker.Config, takes time.Duration) *service {
	return &service{
		b: breaker.New("b", c), began: time.Now(), refused: map[time.Duration]int{},
		takes: func(time.Duration) time.Duration { return takes },
		call: func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error {
			return b.Run(ctx, f)
		},
	}
}

// callFor makes a call every 10 ms for the given time. The calls have the given timeouts in turn.
func (s *service) callFor(length time.Duration, allowed ...time.Duration) {
	for i := range int(length / (10 * time.Millisecond)) {
		s.group.Go(func() { s.makeCall(allowed[i%len(allowed)]) })
		time.Sleep(10 * time.Millisecond)
	}
	synctest.Wait()
}

// makeCall makes one call.
func (s *service) makeCall(allowed time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), allowed)
	defer cancel()
	err := s.call(ctx, s.b, func(ctx context.Context) error {
		select {
		case <-time.After(s.takes(time.Since(s.began))):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, breaker.ErrOpen) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused[allowed]++
	}
}

// callForms are the ways to make a call with a context.
func callForms() map[string]func(context.Context, *breaker.Breaker, func(context.Context) error) error {
	judge := func(_ struct{}, err error) breaker.Outcome { return breaker.DefaultClassify(err) }
	return map[string]func(context.Context, *breaker.Breaker, func(context.Context) error) error{
		"Run": func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error {
			return b.Run(ctx, f)
		},
		"Do": func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error {
			_, err := breaker.Do(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
			return err
		},
		"DoResult": func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error {
			_, err := breaker.DoResult(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, judge)
			return err
		},
		"Done": func(ctx context.Context, b *breaker.Breaker, f func(context.Context) error) error {
			p, err := b.Allow()
			if err != nil {
				return err
			}
			err = f(ctx)
			p.Done(ctx, err)
			return err
		},
	}
}
