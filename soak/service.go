package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// conduct is how a service behaves for the time being.
type conduct int32

const (
	answers conduct = iota
	failsSome
	fails
	hangs // until the caller gives up
	panics
	conducts
)

var errFailed = errors.New("failed")

// service is something to call that is not always well.
type service struct{ now atomic.Int32 }

// change draws another conduct; a good one half of the time.
func (s *service) change(r *rand.Rand) {
	s.now.Store(int32(r.IntN(2) * r.IntN(int(conducts))))
}

// catch recovers what a service that panics has panicked with, when deferred.
func catch() {
	if p := recover(); p != nil {
		if err, ok := p.(error); !ok || !errors.Is(err, errFailed) {
			panic(p)
		}
	}
}

// call calls the service. Those who are let hang are given up after a moment.
func (s *service) call(ctx context.Context) error {
	switch conduct(s.now.Load()) {
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
	default: // it answers
	}
	return nil
}
