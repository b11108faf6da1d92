package tally_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/striped"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// TestTypesHaveTheDocumentedStripedCounters finds the counters in the types, because it depends on
// the machine whether a counter is striped in a run. A tally has three counters. The counter of
// slow calls is never striped.
func TestTypesHaveTheDocumentedStripedCounters(t *testing.T) {
	perTally := reflect.TypeFor[[3]striped.Counter]()
	counters, found := reflect.TypeFor[tally.Calls]().FieldByName("counters")
	require.True(t, found)
	require.Equal(t, perTally, counters.Type)
	require.Equal(t, []string{"tally.Calls.counters"}, fieldsOf[striped.Counter](reflect.TypeFor[window.Calls]()))
	require.ElementsMatch(t, []string{"breaker.Breaker.refused", "tally.Calls.counters"}, fieldsOf[striped.Counter](reflect.TypeFor[breaker.Breaker]()))
	require.ElementsMatch(t, []string{
		"breaker.regime.tally",
		"breaker.endedTally.tally", // of windows that Reconfigure has ended
		"breaker.ramp.counted",     // while the breaker recovers
	}, fieldsOf[tally.Calls](reflect.TypeFor[breaker.Breaker]()))
}

// fieldsOf returns the fields of type T of a type and of all types that its values lead to.
func fieldsOf[T any](root reflect.Type) (fields []string) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, field string)
	visit = func(t reflect.Type, field string) {
		if t == reflect.TypeFor[T]() {
			fields = append(fields, field)
			return
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			// atomic.Pointer[T] has an array of *T
			visit(t.Elem(), field)
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for f := range t.Fields() {
				visit(f.Type, t.String()+"."+f.Name)
			}
		default:
		}
	}
	visit(root, "")
	return fields
}
