package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// TestEveryAlteredOutputIsAMismatch alters one output of one step, and expects a mismatch: in one
// of 20 sequences, at a random step that weir does not skip, for each output of the step.
func TestEveryAlteredOutputIsAMismatch(t *testing.T) {
	for name, p := range replayers {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			altered := 0
			for _, seq := range read(t, filepath.Join("testdata", name+traceSuffix)) {
				steps := replayOne(t, p, seq).steps
				if len(steps) == 0 || random.IntN(testenv.Repeat(3, 20)) > 0 {
					continue
				}
				at := steps[random.IntN(len(steps))]
				for key, raw := range alterations(t, seq.Steps[at], p.inputs) {
					bad := seq
					bad.Steps = slices.Clone(seq.Steps)
					bad.Steps[at] = raw
					require.NotEmpty(t, replayOne(t, p, bad).mismatches, "sequence %s, step %d: %s altered in %s, to %s", seq.ID, at, key, seq.Steps[at], raw)
					altered++
				}
			}
			require.NotZero(t, altered)
		})
	}
}

// alterations returns, for each output of a step, the step with that output altered.
func alterations(t *testing.T, step json.RawMessage, inputs []string) map[string]json.RawMessage {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(step))
	d.UseNumber()
	var fields map[string]any
	require.NoError(t, d.Decode(&fields))
	out := map[string]json.RawMessage{}
	for key, value := range fields {
		if slices.Contains(inputs, key) {
			continue
		}
		bad := maps.Clone(fields)
		bad[key] = alter(value)
		raw, err := json.Marshal(bad)
		require.NoError(t, err)
		out[key] = raw
	}
	return out
}

// alter returns a different value of the same kind.
func alter(value any) any {
	switch v := value.(type) {
	case nil:
		return 1
	case bool:
		return !v
	case string:
		return v + "x"
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n + 1
		}
		f, _ := v.Float64()
		return f + 0.5
	case []any:
		if len(v) == 0 {
			return []any{1}
		}
		v = slices.Clone(v)
		v[len(v)-1] = alter(v[len(v)-1])
		return v
	case map[string]any:
		v = maps.Clone(v)
		key := slices.Min(slices.Collect(maps.Keys(v)))
		v[key] = alter(v[key])
		return v
	}
	panic(fmt.Sprintf("no alteration of %T", value))
}
