//go:build !js

package weirconfig

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyHangup makes the signal SIGHUP arrive at c until stop is called.
func notifyHangup(c chan<- os.Signal) (stop func()) {
	signal.Notify(c, syscall.SIGHUP)
	return func() { signal.Stop(c) }
}
