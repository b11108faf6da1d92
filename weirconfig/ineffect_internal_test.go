package weirconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

// change is a change of one field, with an exercise that shows the value of the field.
type change struct {
	key           string
	before, after string // files
	config        func(trace *strings.Builder) Config
	exercise      func(t *testing.T, s *Set, trace *strings.Builder)
}

// trace makes a set of the first file, updates it to the other files, and returns the text that the
// exercise then writes.
func (c change) trace(t *testing.T, files ...string) string {
	t.Helper()
	var trace strings.Builder
	synctest.Test(t, func(t *testing.T) {
		var config Config
		if c.config != nil {
			config = c.config(&trace)
		}
		set, err := New(mustParse(t, files[0]), config)
		require.NoError(t, err)
		for _, text := range files[1:] {
			require.NoError(t, set.Update(mustParse(t, text)), "%s: %s", c.key, text)
		}
		c.exercise(t, set, &trace)
	})
	return trace.String()
}

// sleep is time.Sleep for exercises, which run in the bubble of trace.
func sleep(d time.Duration) { time.Sleep(d) }

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("w.yaml", []byte(text))
	require.NoError(t, err, text)
	return f
}

// requireInEffect requires that a set that was updated to the new file shows the same as a set that
// was made of the new file, and that a set of the old file shows something else.
func (c change) requireInEffect(t *testing.T) {
	t.Helper()
	after := c.trace(t, c.after)
	require.NotEqual(t, c.trace(t, c.before), after, "%s: the exercise does not show the field", c.key)
	require.Equal(t, after, c.trace(t, c.before, c.after), c.key)
}

// writeObjects writes the configs, limits and metrics of all objects, as the live page shows them.
func writeObjects(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	for _, source := range s.Sources() {
		if source != s {
			showSource(t, source, trace)
		}
	}
}

// showSource is writeObjects for one source. Sources of different kinds may have the same name.
func showSource(t *testing.T, source stat.Source, trace *strings.Builder) {
	t.Helper()
	page, err := dashboard.New(dashboard.Config{}, source)
	require.NoError(t, err)
	get := func(path string) []byte {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.Bytes()
	}
	var list struct{ Rows, Alerts, Notifiers []struct{ ID string } }
	require.NoError(t, json.Unmarshal(get("/snapshot.json"), &list))
	for _, row := range slices.Concat(list.Rows, list.Alerts, list.Notifiers) {
		trace.Write(get("/source.json?id=" + row.ID))
	}
	for series, value := range source.Observe {
		fmt.Fprintln(trace, series.Instrument.Name, series.Values, value)
	}
}

// makeCalls makes calls to a gate: some that hold slots, some that take a while, and one with a
// deadline.
func makeCalls(t *testing.T, g *weir.Gate, trace *strings.Builder) {
	t.Helper()
	began := time.Now()
	note := func(err error) { fmt.Fprintln(trace, time.Since(began), err) }
	var permits [12]weir.Permit
	for i := range permits {
		var err error
		permits[i], err = g.Allow(t.Context())
		note(err)
	}
	for i := range permits {
		permits[i].Done(t.Context(), nil)
	}
	for range 80 {
		time.Sleep(300 * time.Millisecond)
		note(g.Run(t.Context(), func(context.Context) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}))
	}
	time.Sleep(time.Second)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		note(g.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		cancel()
	}
}

func exerciseGate(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	makeCalls(t, s.Gate("a"), trace)
	makeRetries(t, s.Gate("a"), trace)
	writeObjects(t, s, trace)
}

func exerciseGroup(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	makeCalls(t, s.Group("a").Get("key"), trace)
	makeRetries(t, s.Group("a").Get("key"), trace)
	writeObjects(t, s, trace)
}

// makeRetries makes more retries than the budget allows, first calls, and retries again.
func makeRetries(t *testing.T, g *weir.Gate, trace *strings.Builder) {
	t.Helper()
	call := func(attempt int) {
		time.Sleep(time.Second)
		ctx := weir.WithAttempt(t.Context(), attempt)
		fmt.Fprintln(trace, attempt, g.Run(ctx, func(context.Context) error { return nil }))
	}
	for _, calls := range []int{0, 10} {
		for range calls {
			call(0)
		}
		for range 6 {
			call(1)
		}
	}
}

// exerciseMaxOpen lets the services of three keys fail.
func exerciseMaxOpen(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	for _, key := range []string{"a", "b", "c"} {
		for range 50 {
			time.Sleep(300 * time.Millisecond)
			_ = s.Group("a").Get(key).Run(t.Context(), func(context.Context) error { return errors.New("down") })
		}
		fmt.Fprintln(trace, key, s.Group("a").Get(key).Breaker().State())
	}
}

func TestEachChangeOfAGateIsInEffect(t *testing.T) {
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[weir.Config](), ""), keysOf(reflect.TypeFor[breaker.Config](), "breaker.")) {
		c := change{
			key: key, exercise: exerciseGate,
			before: "gates: {a: {" + configWith("") + "}}", after: "gates: {a: {" + configWith(key) + "}}",
		}
		if strings.HasPrefix(key, "breaker.force") {
			// without writeObjects: a breaker that is made with force has entered no state
			c.exercise = func(t *testing.T, s *Set, trace *strings.Builder) { makeCalls(t, s.Gate("a"), trace) }
		}
		c.requireInEffect(t)
	}
}

func TestEachChangeOfAGroupIsInEffect(t *testing.T) {
	keys := slices.Concat(keysOf(reflect.TypeFor[weir.Config](), "gate."), keysOf(reflect.TypeFor[breaker.Config](), "gate.breaker."))
	for _, key := range append(keys, "max_open") {
		c := change{
			key: key, exercise: exerciseGroup,
			before: "groups: {a: {gate: {" + configWith("") + "}}}",
		}
		if inner, ok := strings.CutPrefix(key, "gate."); ok {
			c.after = "groups: {a: {gate: {" + configWith(inner) + "}}}"
		} else {
			c.after = "groups: {a: {gate: {" + configWith("") + "}, max_open: 0.1}}"
			c.exercise = exerciseMaxOpen
		}
		c.requireInEffect(t)
	}
}
