package window_test

import (
	"encoding"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestWordsAreReadAndWritten(t *testing.T) {
	for want, o := range map[string]window.Outcome{"success": window.Success, "failure": window.Failure, "ignored": window.Ignored} {
		text, err := o.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.Equal(t, want, o.String())
		read := window.Outcome(9)
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, o, read)
	}
	for want, e := range map[string]window.Edge{"recent": window.Recent, "strict": window.Strict, "interpolated": window.Interpolated} {
		text, err := e.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.Equal(t, want, e.String())
		read := window.Edge(9)
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, e, read)
	}
}

func TestOtherWordsAreAnError(t *testing.T) {
	outcome, edge := window.Failure, window.Strict
	for _, text := range []string{"", "Failure", "failures", "unknown", "recent "} {
		require.ErrorContains(t, outcome.UnmarshalText([]byte(text)), "window: Outcome is ", text)
		require.ErrorContains(t, edge.UnmarshalText([]byte(text)), "window: Edge is ", text)
	}
	require.Equal(t, window.Failure, outcome, "it stays")
	require.Equal(t, window.Strict, edge)
	for _, m := range []encoding.TextMarshaler{window.Outcome(3), window.Edge(3)} {
		_, err := m.MarshalText()
		require.Error(t, err)
	}
}

func TestAConfigIsReadFromJSON(t *testing.T) {
	var c window.Config
	require.NoError(t, json.Unmarshal([]byte(`{"Span": 60000000000, "Buckets": 6, "Edge": "strict"}`), &c))
	require.Equal(t, window.Strict, c.Edge)
}
