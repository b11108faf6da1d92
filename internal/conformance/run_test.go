package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sequence is one line of a trace.
type sequence struct {
	ID     json.RawMessage   `json:"id"`
	Config json.RawMessage   `json:"config"`
	Steps  []json.RawMessage `json:"steps"`
}

// replayer replays the sequences of one format.
type replayer struct {
	inputs []string // what of a step the recorder chose; all else in it is output, and is compared
	replay func(r *run)
}

// replaying makes a replayer of a function that sets ours up by a config and returns how ours takes a
// step. Others do so for checks that need not ours, and go on where that is left out. Keys that C and S
// do not know are mismatches, so nothing in a trace goes unread.
func replaying[C, S any](inputs string, ours func(r *run, c C) func(s S), others ...func(r *run, c C) func(s S)) replayer {
	return replayer{inputs: strings.Fields(inputs), replay: func(r *run) {
		var c C
		if r.decode(r.seq.Config, &c); r.stopped {
			return
		}
		step := ours(r, c)
		gone := r.paused()
		var checks []func(S)
		for _, begin := range others {
			checks = append(checks, begin(r, c))
		}
		for r.at = 0; r.at < len(r.seq.Steps) && !r.stopped; r.at++ {
			var s S
			if r.decode(r.seq.Steps[r.at], &s); r.stopped {
				return
			}
			if !gone {
				r.alone = false
				if step(s); !r.alone {
					r.steps = append(r.steps, r.at)
				}
				gone = r.paused()
			}
			for _, check := range checks {
				check(s)
			}
		}
	}}
}

// paused reports whether ours has been left out for the rest, and lets the others go on.
func (r *run) paused() bool {
	if !r.stopped || len(r.faults) > 0 {
		return false
	}
	r.stopped = false
	return true
}

// run is the replay of one sequence, and what it came to.
type run struct {
	t       *testing.T
	seq     sequence
	at      int  // the present step
	alone   bool // ours takes no part in the present step
	stopped bool // nothing more is compared

	steps  []int                // that ours was compared at
	left   divergence           // why it was not at all steps
	partly map[divergence][]int // steps of which ours was not compared with all outputs
	faults []string             // mismatches
}

func newRun(t *testing.T, s sequence) *run {
	t.Helper()
	return &run{t: t, seq: s, partly: map[divergence][]int{}}
}

// leave leaves the sequence out, from the present step on.
func (r *run) leave(d divergence) {
	r.without(d)
	r.stopped = true
}

// without leaves ours out of the present step, and so the sequence out of those that were replayed.
func (r *run) without(d divergence) {
	r.alone = true
	if r.left == "" {
		r.left = d
	}
}

// part says that ours differs at the present step, on purpose, in some of the outputs.
func (r *run) part(d divergence) { r.partly[d] = append(r.partly[d], r.at) }

// fault is a mismatch. What follows in the sequence would only repeat it.
func (r *run) fault(format string, args ...any) {
	r.stopped = true
	where := "config"
	if r.at < len(r.seq.Steps) {
		where = fmt.Sprintf("step %d", r.at)
	}
	r.faults = append(r.faults, fmt.Sprintf("sequence %s, %s: ", r.seq.ID, where)+fmt.Sprintf(format, args...))
}

func (r *run) decode(raw json.RawMessage, into any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.fault("%s: %v", raw, err)
	}
}

// same compares an output with ours.
func same[T any](r *run, what string, theirs *T, ours T) {
	switch {
	case r.stopped:
	case theirs == nil:
		r.fault("%s is missing, want %v", what, ours)
	case !reflect.DeepEqual(*theirs, ours) && fmt.Sprint(*theirs, ours) != "NaN NaN":
		r.fault("ours has %s %v, theirs %v: %s", what, ours, *theirs, r.seq.Steps[r.at])
	}
}

// sameOrNull is same for an output that may be null.
func sameOrNull[T any](r *run, what string, theirs, ours *T) {
	if ours == nil {
		none(r, what, theirs)
		return
	}
	same(r, what, theirs, *ours)
}

// none checks that there is no such output.
func none[T any](r *run, what string, theirs *T) {
	if theirs != nil && !r.stopped {
		r.fault("%s is %v, want none", what, *theirs)
	}
}

// near compares an output with ours up to a bound on the difference.
func near(r *run, what string, theirs *number, ours, bound float64) {
	switch {
	case r.stopped:
	case theirs == nil:
		r.fault("%s is missing, want %v", what, ours)
	case float64(*theirs) == ours:
	case !(math.Abs(float64(*theirs)-ours) <= bound):
		r.fault("ours has %s %v, theirs %v: %s", what, ours, *theirs, r.seq.Steps[r.at])
	}
}

// within compares a whole number with ours up to a bound on the difference.
func within(r *run, what string, theirs *int64, ours, bound int64) {
	switch {
	case r.stopped:
	case theirs == nil:
		r.fault("%s is missing, want %v", what, ours)
	case max(*theirs-ours, ours-*theirs) > bound:
		r.fault("ours has %s %d, theirs %d, more than %d apart: %s", what, ours, *theirs, bound, r.seq.Steps[r.at])
	}
}

// number is a float64 that JSON has no figure for in the worst case.
type number float64

func (n *number) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Infinity"`, `"Inf"`:
		*n = number(math.Inf(1))
	case `"-Infinity"`:
		*n = number(math.Inf(-1))
	default:
		return json.Unmarshal(raw, (*float64)(n))
	}
	return nil
}

func unix(ns int64) time.Time { return time.Unix(0, ns) }
