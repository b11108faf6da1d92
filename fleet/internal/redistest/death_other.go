//go:build !linux

package redistest

import "syscall"

// killWithParent returns nil: only Linux can kill a process whose parent has ended.
func killWithParent() *syscall.SysProcAttr { return nil }
