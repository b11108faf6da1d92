package sim

import (
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// inBubble runs f in a bubble of testing/synctest, and returns an error if f panics or leaves
// goroutines behind.
//
// A bubble needs a *testing.T, and a program has none: testing.RunTests runs nothing without the
// flags of a test binary, and testing.Main ends the process. A zero T is enough, because
// synctest.Test only derives the T of the bubble from it. It prints nothing, and bubbles may run in
// parallel.
func inBubble(f func()) error {
	var panicked, left error
	passed := false
	ended := make(chan struct{})
	go func() { // its own goroutine, because a failed synctest.Test ends the one that called it
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				left = fmt.Errorf("the bubble has not ended: %v", p)
			}
		}()
		synctest.Test(new(testing.T), func(*testing.T) {
			defer func() {
				if p := recover(); p != nil {
					panicked = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
			}()
			f()
		})
		passed = true
	}()
	<-ended
	switch {
	case panicked != nil:
		return panicked
	case left == nil && !passed:
		return fmt.Errorf("the bubble has failed, probably because of a data race")
	}
	return left
}
