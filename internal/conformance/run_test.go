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
	// the fields of a step that the recorder chose; all others are outputs, and are compared
	inputs []string
	replay func(r *run)
}

// replaying returns a replayer. begin sets up weir by a config and returns the function that
// replays a step. The functions in checks do the same for checks that do not need weir, and go on
// if weir skips the rest. Keys that C and S do not have are mismatches, so nothing in a trace is
// ignored.
func replaying[C, S any](inputs string, begin func(r *run, c C) func(s S), checks ...func(r *run, c C) func(s S)) replayer {
	return replayer{inputs: strings.Fields(inputs), replay: func(r *run) {
		var c C
		if r.decode(r.seq.Config, &c); r.stopped {
			return
		}
		step := begin(r, c)
		skipped := r.resumeWithoutWeir()
		var checkSteps []func(S)
		for _, begin := range checks {
			checkSteps = append(checkSteps, begin(r, c))
		}
		for r.at = 0; r.at < len(r.seq.Steps) && !r.stopped; r.at++ {
			var s S
			if r.decode(r.seq.Steps[r.at], &s); r.stopped {
				return
			}
			if !skipped {
				r.alone = false
				if step(s); !r.alone {
					r.steps = append(r.steps, r.at)
				}
				skipped = r.resumeWithoutWeir()
			}
			for _, check := range checkSteps {
				check(s)
			}
		}
	}}
}

// resumeWithoutWeir reports whether weir skips the rest, and lets the other checks go on.
func (r *run) resumeWithoutWeir() bool {
	if !r.stopped || len(r.mismatches) > 0 {
		return false
	}
	r.stopped = false
	return true
}

// run is the replay of one sequence, with its results.
type run struct {
	t       *testing.T
	seq     sequence
	at      int  // the current step
	alone   bool // weir skips the current step
	stopped bool // nothing more is compared

	steps      []int                // at which weir was compared
	left       divergence           // why some steps were skipped
	partly     map[divergence][]int // steps at which some outputs were not compared
	mismatches []string
}

func newRun(t *testing.T, s sequence) *run {
	t.Helper()
	return &run{t: t, seq: s, partly: map[divergence][]int{}}
}

// skipRest skips the sequence from the current step on.
func (r *run) skipRest(d divergence) {
	r.skipStep(d)
	r.stopped = true
}

// skipStep skips the current step, so the sequence does not count as replayed.
func (r *run) skipStep(d divergence) {
	r.alone = true
	if r.left == "" {
		r.left = d
	}
}

// noteDivergence notes that weir differs on purpose in some outputs of the current step.
func (r *run) noteDivergence(d divergence) { r.partly[d] = append(r.partly[d], r.at) }

// mismatch reports a mismatch and ends the replay: later steps would only repeat it.
func (r *run) mismatch(format string, args ...any) {
	r.stopped = true
	where := "config"
	if r.at < len(r.seq.Steps) {
		where = fmt.Sprintf("step %d", r.at)
	}
	r.mismatches = append(r.mismatches, fmt.Sprintf("sequence %s, %s: ", r.seq.ID, where)+fmt.Sprintf(format, args...))
}

func (r *run) decode(raw json.RawMessage, into any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.mismatch("%s: %v", raw, err)
	}
}

// checkSame compares an output of the reference with weir's.
func checkSame[T any](r *run, what string, reference *T, weir T) {
	switch {
	case r.stopped:
	case reference == nil:
		r.mismatch("%s is missing in the reference, is %v in weir", what, weir)
	case !reflect.DeepEqual(*reference, weir) && fmt.Sprint(*reference, weir) != "NaN NaN":
		r.mismatch("%s is %v in weir, %v in the reference: %s", what, weir, *reference, r.seq.Steps[r.at])
	}
}

// checkSameOrNull is like checkSame, for an output that may be null.
func checkSameOrNull[T any](r *run, what string, reference, weir *T) {
	if weir == nil {
		checkAbsent(r, what, reference)
		return
	}
	checkSame(r, what, reference, *weir)
}

// checkAbsent checks that weir and the reference both have no output.
func checkAbsent[T any](r *run, what string, reference *T) {
	if reference != nil && !r.stopped {
		r.mismatch("%s is %v in the reference, missing in weir", what, *reference)
	}
}

// checkClose compares an output with weir's, up to a bound on the difference.
func checkClose(r *run, what string, reference *number, weir, bound float64) {
	switch {
	case r.stopped:
	case reference == nil:
		r.mismatch("%s is missing in the reference, is %v in weir", what, weir)
	case float64(*reference) == weir:
	case !(math.Abs(float64(*reference)-weir) <= bound):
		r.mismatch("%s is %v in weir, %v in the reference: %s", what, weir, *reference, r.seq.Steps[r.at])
	}
}

// checkWithin compares an integer with weir's, up to a bound on the difference.
func checkWithin(r *run, what string, reference *int64, weir, bound int64) {
	switch {
	case r.stopped:
	case reference == nil:
		r.mismatch("%s is missing in the reference, is %v in weir", what, weir)
	case max(*reference-weir, weir-*reference) > bound:
		r.mismatch("%s is %d in weir, %d in the reference, more than %d apart: %s", what, weir, *reference, bound, r.seq.Steps[r.at])
	}
}

// number is a float64 that may be infinite or NaN, which JSON writes as a string.
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

func nanoTime(ns int64) time.Time { return time.Unix(0, ns) }
