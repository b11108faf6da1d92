package breaker_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/window"
)

// modelStep is the text of a step, for the report when breaker and model differ.
type modelStep struct {
	at   time.Duration
	verb string
	args []any
}

func (s modelStep) String() string {
	return fmt.Sprintf("%12v  %s", s.at, strings.TrimSuffix(fmt.Sprintln(append([]any{s.verb}, s.args...)...), "\n"))
}

func (r *modelRun) note(at time.Duration, verb string, args ...any) {
	r.steps = append(r.steps, modelStep{at, verb, args})
	r.counts[verb]++
}

func (r *modelRun) equalErrors(verb string, want *breaker.OpenError, err error) {
	if want == nil {
		if err != nil {
			r.fail(verb, nil, err)
		}
		return
	}
	r.counts["refused "+string(want.State)]++
	var got *breaker.OpenError
	if !errors.As(err, &got) || !errors.Is(err, breaker.ErrOpen) || !errors.Is(err, sentinel.ErrRefused) {
		r.fail(verb, *want, err)
	}
	its := breaker.Facts(*got)
	if want.State == breaker.HalfOpen && its.Until.After(want.Until) {
		// Until is the latest time: a slot may fall free sooner
		its.Until = want.Until
	}
	if !reflect.DeepEqual(its, *want) {
		r.fail(verb, *want, its)
	}
}

// compare compares all that can be seen at the time given.
func (r *modelRun) compare(at time.Duration) {
	date, want := modelDate(at), r.model.stats(at)
	if got := r.real.StatsAt(date); got != want {
		r.fail(fmt.Sprintf("StatsAt(%v)", at), want, got)
	}
	if got := r.real.StateAt(date); got != want.State {
		r.fail(fmt.Sprintf("StateAt(%v)", at), want.State, got)
	}
	if got := r.real.CountsAt(date); got != want.Counts {
		r.fail(fmt.Sprintf("CountsAt(%v)", at), want.Counts, got)
	}
}

// compareRest compares what can be seen without a time.
func (r *modelRun) compareRest() {
	if want, got := r.model.totals, r.real.Totals(); got != want {
		r.fail("Totals", want, got)
	}
	want, got := r.model.changes, r.told.all
	if len(got) != len(want) {
		r.fail("changes, how many", len(want), len(got))
	}
	for i := r.compared; i < len(got); i++ {
		its := got[i].WithoutContext()
		its.Margin, its.LastFailures = "", nil // the model does not know them
		if !reflect.DeepEqual(its, want[i]) {
			r.fail("a change", want[i], its)
		}
	}
	r.compared = len(got)
}

// fail reports a difference and the last steps.
func (r *modelRun) fail(what string, want, got any) {
	r.t.Helper()
	var last strings.Builder
	for _, s := range r.steps[max(len(r.steps)-25, 0):] {
		fmt.Fprintln(&last, s)
	}
	r.t.Fatalf("%s, step %d: the breaker is not as its model\n%s\nmodel %v since %v\nconfig %s\nlast steps\n%s",
		r.name, len(r.steps), modelDifference(what, want, got), r.model.stay.state, r.model.stay.since, modelFields(r.given), last.String())
}

// modelDifference returns the fields in which two structs differ.
func modelDifference(what string, want, got any) string {
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	if want == nil || got == nil || w.Kind() != reflect.Struct || g.Type() != w.Type() {
		return fmt.Sprintf("%s: model %v, breaker %v", what, modelShownValue(want), modelShownValue(got))
	}
	var b strings.Builder
	for i := range w.NumField() {
		if !w.Type().Field(i).IsExported() {
			fmt.Fprintf(&b, "%s: %s: model %v, breaker %v\n", what, w.Type().Field(i).Name, w.Field(i), g.Field(i))
			continue
		}
		if mine, its := w.Field(i).Interface(), g.Field(i).Interface(); mine != its {
			fmt.Fprintf(&b, "%s: %s: model %v, breaker %v\n", what, w.Type().Field(i).Name, modelShownValue(mine), modelShownValue(its))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func modelShownValue(v any) any {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return "never"
		}
		return v.Sub(t0)
	case window.Counts:
		return fmt.Sprintf("%+v", v)
	}
	return v
}

// modelFields returns the fields of a config that are not zero.
func modelFields(c breaker.Config) string {
	v, fields := reflect.ValueOf(c), []string(nil)
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.IsZero():
		case f.Kind() == reflect.Func:
			fields = append(fields, v.Type().Field(i).Name+": set")
		default:
			fields = append(fields, fmt.Sprintf("%s: %v", v.Type().Field(i).Name, f.Interface()))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
