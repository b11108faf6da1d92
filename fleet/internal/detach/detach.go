// Package detach lets a caller leave what it has begun.
package detach

import (
	"context"
	"runtime"
)

// outcome is what a function returned, or how else it ended.
type outcome[T any] struct {
	value    T
	err      error
	returned bool
	panicked any // nil after runtime.Goexit
}

// Do calls f and returns what it returns. If ctx ends first, Do returns its error at once, and f
// goes on in a goroutine of its own; f must end by itself soon after. A panic of f, and the end of
// its goroutine, are passed on to the caller. After the caller has left, both are dropped.
func Do[T any](ctx context.Context, f func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return f()
	}
	done := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			if !o.returned {
				o.panicked = recover() // it belongs to the caller, which may expect it
			}
			done <- o
		}()
		o.value, o.err = f()
		o.returned = true
	}()
	select {
	case o := <-done:
		return o.result()
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.result()
	default:
		var none T
		return none, ctx.Err()
	}
}

func (o outcome[T]) result() (T, error) {
	switch {
	case o.returned:
	case o.panicked != nil:
		panic(o.panicked)
	default:
		runtime.Goexit()
	}
	return o.value, o.err
}
