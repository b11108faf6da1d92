package tally_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// TestAWindowHasOneCountThatSpreadsAndABreakerTwo looks for them in the types, since whether one
// spreads depends on the machine. TestMemoryOfASpreadCount says what each takes.
func TestAWindowHasOneCountThatSpreadsAndABreakerTwo(t *testing.T) {
	require.Equal(t, []string{"window.Calls.tally"}, countsIn(reflect.TypeFor[window.Calls]()))
	require.ElementsMatch(t, []string{
		"breaker.Breaker.refused",
		"breaker.phase.tally",
		"breaker.ended.tally", // of windows that Reconfigure has ended
	}, countsIn(reflect.TypeFor[breaker.Breaker]()))
	for _, owner := range []reflect.Type{reflect.TypeFor[tally.Calls](), reflect.TypeFor[tally.Count]()} {
		cells := 0
		for field := range owner.Fields() {
			if field.Name == "spread" {
				cells++
			}
		}
		require.Equal(t, 1, cells, owner)
	}
}

// countsIn returns the fields, of a type and of all that its values lead to, that count calls.
func countsIn(root reflect.Type) (fields []string) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, field string)
	visit = func(t reflect.Type, field string) {
		if t == reflect.TypeFor[tally.Calls]() || t == reflect.TypeFor[tally.Count]() {
			fields = append(fields, field)
			return
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map: // atomic.Pointer[T] has an array of *T
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
