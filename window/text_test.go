package window_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestConfigFromJSON(t *testing.T) {
	var c window.Config
	require.NoError(t, json.Unmarshal([]byte(`{"Span": 60000000000, "Buckets": 6, "Edge": "strict"}`), &c))
	require.Equal(t, window.Config{Span: 60_000_000_000, Buckets: 6, Edge: window.Strict}, c)
	require.NoError(t, c.Validate())

	require.NoError(t, json.Unmarshal([]byte(`{"Edge": "Strict"}`), &c))
	require.EqualError(t, c.Validate(), `window: Edge is "Strict", must be "recent", "strict" or "interpolated"`)
}

// TestEdgeDefaultsToRecent compares a counter without an Edge to one with each of them.
func TestEdgeDefaultsToRecent(t *testing.T) {
	sumWith := func(e window.Edge) int64 {
		c := window.NewCounterAt(window.Config{Span: 10 * time.Second, Edge: e}, t0)
		c.AddAt(t0, 100)
		return c.SumAt(t0.Add(10*time.Second + time.Second/2))
	}
	require.Equal(t, []int64{0, 0, 100, 50}, []int64{sumWith(""), sumWith(window.Recent), sumWith(window.Strict), sumWith(window.Interpolated)})
}
