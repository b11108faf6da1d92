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

// FuzzOutcomeText reads a text, writes it and reads it again.
func FuzzOutcomeText(f *testing.F) {
	for _, o := range []window.Outcome{window.Success, window.Failure, window.Ignored} {
		text, err := o.MarshalText()
		require.NoError(f, err)
		require.Equal(f, o.String(), string(text))
		f.Add(string(text))
	}
	f.Add("")
	f.Add("Failure")
	f.Fuzz(func(t *testing.T, text string) {
		const before = window.Outcome(9)
		o := before
		if err := o.UnmarshalText([]byte(text)); err != nil {
			require.ErrorContains(t, err, "must be success, failure, ignored or overloaded")
			require.Equal(t, before, o)
			_, err = o.MarshalText()
			require.EqualError(t, err, "window: Outcome is 9, must be Success, Failure, Ignored or Overloaded")
			return
		}
		require.Contains(t, []string{"success", "failure", "ignored"}, text)
		again, err := o.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(again))
	})
}
