//go:build !linux

package redistest

import "syscall"

// orphans: only Linux can kill them.
func orphans() *syscall.SysProcAttr { return nil }
