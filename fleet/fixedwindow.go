package fleet

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// FixedWindow allows Limit tokens per key in each window of time, by the server's clock. Windows
// are aligned to Unix time: windows of a minute begin on the minute, windows of a day at midnight
// UTC.
//
// It does what INCR and EXPIRE do, without their flaw that a crash between the two commands blocks
// a key forever. The end of one window and the beginning of the next can together allow twice Limit
// within a moment. RetryAfter is the shortest possible wait, accurate to a microsecond. If the
// limit changes, what was taken still counts, unless Window becomes shorter: then a new window
// begins.
type FixedWindow struct {
	// Limit is the maximum number of tokens in a window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ms to 10 years in whole microseconds. Required.
	Window time.Duration
}

func (f FixedWindow) compile() (limitSpec, error) {
	return windowSpec("fixedwindow", f.Limit, f.Window, f.Window.Microseconds()), validateWindow(f.Limit, f.Window)
}

const maxWindow = 10 * 365 * 24 * time.Hour

// validateWindow returns an error that names every invalid field of a window.
func validateWindow(limit int, window time.Duration) error {
	var faults []error
	if limit < 1 || limit > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("fleet: Limit is %d, must lie between 1 and %d", limit, math.MaxInt32))
	}
	if window < time.Millisecond || window > maxWindow || window%time.Microsecond != 0 {
		faults = append(faults, fmt.Errorf("fleet: Window is %s, must be whole microseconds between 1ms and %s", window, maxWindow))
	}
	return errors.Join(faults...)
}
