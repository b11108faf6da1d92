package redistest

import "syscall"

// killWithParent returns attributes that kill the server if the test process is killed without
// cleanup.
func killWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
