package weirconfig

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// otherValues are valid values of the fields of a gate or a group that differ from those of
// baseGate.
var otherValues = map[string]string{
	"rate": "7/s", "burst": "3", "max_wait": "3s", "max_concurrent": "4", "adaptive": "true", "refuse_hopeless": "true",
	"retry_share": "0.2", "retry_burst": "4",
	"max_keys": "50", "max_series": "3", "max_open": "0.5", "show_keys": "true",

	"breaker.failure_rate": "0.4", "breaker.slow_call": "2s", "breaker.slow_rate": "0.7", "breaker.latency": "false",
	"breaker.consecutive_failures": "30", "breaker.failure_run": "40",
	"breaker.min_calls": "31", "breaker.window": "20s", "breaker.buckets": "5", "breaker.last_calls": "200",
	"breaker.cooldown": "2s", "breaker.cooldown_factor": "2", "breaker.max_cooldown": "7m", "breaker.cooldown_jitter": "0.2",
	"breaker.max_retry_after": "2m", "breaker.probes": "2", "breaker.probe_timeout": "9s", "breaker.half_open_timeout": "4m",
	"breaker.recovery": "6s", "breaker.force": "forced_open", "breaker.keep_failures": "3", "breaker.force_reason": "maintenance",
}

func parseObject(t *testing.T, kind, config string) *File {
	t.Helper()
	f, err := Parse("w.yaml", []byte(kind+": {a: {"+config+"}}"))
	require.NoError(t, err, config)
	return f
}

// configWith returns the fields of a gate with one other value.
func configWith(key string) string {
	gate := map[string]string{"rate": "5/s", "burst": "5", "retry_share": "0.1", "retry_burst": "5"}
	circuit := map[string]string{"slow_call": "1s", "latency": "true"}
	if inner, ok := strings.CutPrefix(key, "breaker."); ok {
		circuit[inner] = otherValues[key]
	} else if key != "" {
		gate[key] = otherValues[key]
	}
	switch key {
	case "breaker.last_calls":
		delete(circuit, "latency")
	case "breaker.force_reason":
		circuit["force"] = "forced_open"
	}
	var fields, inner []string
	for k, v := range gate {
		fields = append(fields, k+": "+v)
	}
	for k, v := range circuit {
		inner = append(inner, k+": "+v)
	}
	return strings.Join(fields, ", ") + ", breaker: {" + strings.Join(inner, ", ") + "}"
}

// keysOf returns the keys of the fields that a file can have, except fields that are objects.
func keysOf(t reflect.Type, prefix string) (keys []string) {
	for _, f := range fieldsOf(t) {
		if f.omitted == "" && f.Type.Kind() != reflect.Struct || f.Type.Name() == "Rate" {
			keys = append(keys, prefix+f.key)
		}
	}
	return keys
}

// Each field of a gate changes while the program runs, and those in newWindow begin a new window.
func TestEachFieldOfAGateHasTheEffectOfTheTable(t *testing.T) {
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[weir.Config](), ""), keysOf(reflect.TypeFor[breaker.Config](), "breaker.")) {
		require.Contains(t, otherValues, key)
		synctest.Test(t, func(t *testing.T) {
			set, err := New(parseObject(t, "gates", configWith("")), Config{})
			require.NoError(t, err)
			g := set.Gate("a")
			require.NoError(t, g.Run(t.Context(), func(context.Context) error { return nil }))
			require.NoError(t, set.Update(parseObject(t, "gates", configWith(key))))
			empty := g.Breaker().Counts().Calls() == 0
			// configWith sets force with force_reason
			require.Equal(t, slices.Contains(newWindowFields, key) || key == "breaker.force_reason", empty, key)
		})
	}
}

func TestEachFieldOfAGroupHasTheEffectOfTheTable(t *testing.T) {
	base := "gate: {" + configWith("") + "}"
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[weir.GroupConfig](), ""), keysOf(reflect.TypeFor[weir.Config](), "gate.")) {
		set, err := New(parseObject(t, "groups", base), Config{})
		require.NoError(t, err)
		next := fmt.Sprintf("gate: {%s}, %s: %s", configWith(""), key, otherValues[key])
		if inner, ok := strings.CutPrefix(key, "gate."); ok {
			next = "gate: {" + configWith(inner) + "}"
		}
		err = set.Update(parseObject(t, "groups", next))
		fixed := slices.ContainsFunc(fixedGroupFields, func(f fixedField[weir.GroupConfig]) bool { return f.key == key })
		if key == "gate.rate" { // a rate can change, and can also be removed
			require.NoError(t, err)
			err = set.Update(parseObject(t, "groups", "gate: {}"))
		}
		if fixed {
			require.ErrorIs(t, err, ErrRestart, key)
		} else {
			require.NoError(t, err, key)
		}
	}
}
