//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package alert

import (
	"os"
	"syscall"
)

// lockState locks a state file until the result is closed or the process ends. The lock is on a
// separate file, because writes replace the state file.
func lockState(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: path + ".lock", Err: err}
	}
	return f, nil
}
