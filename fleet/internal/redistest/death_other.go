//go:build !linux

package redistest

import "syscall"

// orphans returns nil: only Linux can kill orphaned processes.
func orphans() *syscall.SysProcAttr { return nil }
