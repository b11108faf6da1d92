package redistest

import "syscall"

// orphans returns attributes that kill the server if the test process is killed without cleanup.
func orphans() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
