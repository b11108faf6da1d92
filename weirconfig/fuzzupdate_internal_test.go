package weirconfig

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
)

// snapshot is the state of a set: what it was made of, and what its objects show.
type snapshot struct {
	setup  setup
	known  map[string]weir.GroupConfig
	gates  map[string]*weir.Gate
	groups map[string]*weir.Group[string]
	shown  string
}

func stateOf(t *testing.T, s *Set) snapshot {
	var shown strings.Builder
	writeObjects(t, s, &shown)
	return snapshot{*s.setup, maps.Clone(s.known), maps.Clone(s.gates), maps.Clone(s.groups), shown.String()}
}

// A second file is in effect as a whole, or it is refused and changes nothing.
func FuzzUpdate(f *testing.F) {
	example, err := os.ReadFile("testdata/weir.yaml")
	require.NoError(f, err)
	f.Setenv("SLACK_TOKEN", "hunter2")
	texts := []string{
		string(example), "gates: {a: {rate: 1/s}, b: }", "groups: {a: {max_keys: 5}}", "groups: {a: {max_keys: 6, gate: {rate: 1/s}}, b: }",
		"groups: {a: {max_keys: 6}}\ngates: {b: {breaker: {force: forced_open}}}", "{gates: {a: }, rules: [{name: own, of: a, value: tripped}]}",
		"monitor: {state_file: /tmp/x}", "limits: {a: {policies: [{name: x, rate: 1/s, by: ip}]}}", "limits: {a: }", "gates: {a: {burst: 1}}",
		"sinks: {a: {kind: log}, b: {kind: slack, url: \"http://x\"}}", "sinks: {b: {kind: teams, url: \"http://x\"}}",
	}
	for _, first := range texts {
		for _, second := range texts {
			f.Add(first, second)
		}
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if len(first)+len(second) > 4096 {
			return
		}
		one, err := Parse("w.yaml", []byte(first))
		other, fault := Parse("w.yaml", []byte(second))
		if err != nil || fault != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			own := alert.Rule{Name: "own", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 0 })}
			set, err := New(one, Config{Rules: []alert.Rule{own}})
			if err != nil {
				return // the file has a rule with the name own too
			}
			before := stateOf(t, set)
			if err := set.Update(other); err != nil {
				require.Equal(t, before, stateOf(t, set))
				require.NotEmpty(t, set.Notice())
				return
			}
			require.Empty(t, set.Notice())
			for name, gate := range before.gates {
				if _, stays := other.doc().Gates[name]; !stays {
					require.ErrorContains(t, gate.Run(t.Context(), func(context.Context) error { return nil }), "was removed")
				}
			}
			for name := range other.doc().Gates {
				require.NotContains(t, set.Gate(name).Explain(), "was removed")
			}
			_ = set.Update(one)
		})
	})
}
