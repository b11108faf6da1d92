//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package alert

import "os"

// lockState does not lock, because the standard library has no lock for this system.
func lockState(path string) (*os.File, error) {
	return os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
}
