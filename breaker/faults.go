package breaker

import (
	"fmt"
	"time"
)

// faults are the errors of a Config.
type faults []error

func (fs *faults) add(format string, args ...any) {
	*fs = append(*fs, fmt.Errorf("breaker: "+format, args...))
}

func (fs *faults) checkShare(field string, v float64) {
	if v != Off && !(v >= 0 && v <= 1) {
		fs.add("%s is %v, must be above 0 and at most 1, or Off", field, v)
	}
}

// atLeast adds an error if d is below least. least is 0, or Off for fields that can be off.
func (fs *faults) atLeast(field string, d, least time.Duration) {
	switch {
	case d >= least:
	case least == Off:
		fs.add("%s is %v, must not be negative, or Off", field, d)
	default:
		fs.add("%s is %v, must not be negative", field, d)
	}
}
