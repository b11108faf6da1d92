package redistest

import "syscall"

// orphans kills the server when the test's process has been killed, which runs no cleanup.
func orphans() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
