package weirconfig

import "os"

// notifyHangup does nothing: there is no signal SIGHUP.
func notifyHangup(chan<- os.Signal) (stop func()) { return func() {} }
