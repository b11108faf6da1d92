package fleet_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// traceSequence is one line of a trace: requests to a real system and its replies.
type traceSequence[C, S any] struct {
	ID     json.RawMessage `json:"id"`
	Config C               `json:"config"`
	Steps  []S             `json:"steps"`
}

// readTraces reads the sequences of a file. FORMATS.md in the same folder describes them.
func readTraces[C, S any](t *testing.T, name string) (list []traceSequence[C, S]) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "internal", "conformance", "testdata", name+".jsonl.gz"))
	require.NoError(t, err)
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var s traceSequence[C, S]
		require.NoError(t, json.Unmarshal(line, &s))
		list = append(list, s)
	}
	require.NotEmpty(t, list)
	return list
}
