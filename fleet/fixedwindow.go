package fleet

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// FixedWindow admits for each key Limit permits in each window of time, by the server's clock. The
// windows lie on the grid of Unix time: those of a minute begin with the minute, those of a day at
// midnight UTC.
//
// It is what INCR and EXPIRE do, without their flaw that a crash between the two blocks a key for
// ever. The end of one window and the beginning of the next can together admit twice Limit within a
// moment. RetryAfter is minimal, to the microsecond. If Window becomes shorter, a window begins anew;
// otherwise what was taken still counts when the limit changes.
type FixedWindow struct {
	Limit  int           // the most permits in a window, from 1 to 2^31-1. Must be given.
	Window time.Duration // the length of a window, whole µs from 1 ms to 10 years. Must be given.
}

// maxSpan bounds a window.
const maxSpan = 10 * 365 * 24 * time.Hour

// validateWindow names the faults of a window.
func validateWindow(limit int, span time.Duration) error {
	var faults []error
	if limit < 1 || limit > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("fleet: Limit is %d, must lie between 1 and %d", limit, math.MaxInt32))
	}
	if span < time.Millisecond || span > maxSpan || span%time.Microsecond != 0 {
		faults = append(faults, fmt.Errorf("fleet: Window is %s, must be whole microseconds between 1ms and %s", span, maxSpan))
	}
	return errors.Join(faults...)
}

func (f FixedWindow) compile() (scopedLimit, error) {
	return scopedLimit{limitSpec: fixedWindowSpec{f}}, validateWindow(f.Limit, f.Window)
}

type fixedWindowSpec struct{ FixedWindow }

func (r fixedWindowSpec) scriptName() string                    { return "fixedwindow" }
func (r fixedWindowSpec) redisKeys(base string) []string        { return []string{base} }
func (r fixedWindowSpec) scriptArgs() []any                     { return []any{r.Limit, r.Window.Microseconds()} }
func (r fixedWindowSpec) maxTake() int                          { return r.Limit }
func (r fixedWindowSpec) longRunRate() (float64, time.Duration) { return float64(r.Limit), r.Window }
