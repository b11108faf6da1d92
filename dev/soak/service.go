package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// behavior is the present behavior of a service.
type behavior int32

const (
	answers behavior = iota
	failsSome
	fails
	hangs // until the caller gives up
	panics
	behaviorCount
)

var errFailed = errors.New("failed")

// service is a service that fails at times.
type service struct{ now atomic.Int32 }

// change draws a different behavior, which is answers more than half of the time.
func (s *service) change(r *rand.Rand) {
	s.now.Store(int32(r.IntN(2) * r.IntN(int(behaviorCount))))
}

// recoverFailed, when deferred, recovers the panic of a service.
func recoverFailed() {
	if p := recover(); p != nil {
		if err, ok := p.(error); !ok || !errors.Is(err, errFailed) {
			panic(p)
		}
	}
}

// call calls the service. A call that hangs is cancelled after a moment.
func (s *service) call(ctx context.Context) error {
	switch behavior(s.now.Load()) {
	case failsSome:
		if rand.IntN(3) == 0 {
			return errFailed
		}
	case fails:
		return errFailed
	case hangs:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	case panics:
		panic(errFailed)
	default: // answers
	}
	return nil
}
