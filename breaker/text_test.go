package breaker_test

import (
	"encoding"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestStatesHaveAText(t *testing.T) {
	texts := map[string]struct {
		v    encoding.TextMarshaler
		into encoding.TextUnmarshaler
	}{}
	for s := breaker.Closed; s <= breaker.Shadow; s++ {
		texts[s.String()] = struct {
			v    encoding.TextMarshaler
			into encoding.TextUnmarshaler
		}{s, new(breaker.State)}
	}
	require.Len(t, texts, 7, "each has its own")
	for want, c := range texts {
		text, err := c.v.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.NoError(t, c.into.UnmarshalText(text))
		again, err := c.into.(encoding.TextMarshaler).MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(again))
	}
}

func TestATextThatIsNoneIsRefused(t *testing.T) {
	s := breaker.Open
	require.EqualError(t, s.UnmarshalText([]byte("Open")),
		`breaker: State is "Open", must be closed, open, half_open, forced_open, forced_closed, disabled or shadow`)
	require.Equal(t, breaker.Open, s, "unchanged")

	_, err := breaker.State(7).MarshalText()
	require.Error(t, err)
}

func TestAConfigurationCanBeReadFromJSON(t *testing.T) {
	var c struct{ Initial breaker.State }
	require.NoError(t, json.Unmarshal([]byte(`{"Initial":"shadow"}`), &c))
	require.Equal(t, breaker.Shadow, c.Initial)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"Initial":"trial"}`), &c), `State is "trial"`)
}

func FuzzStateText(f *testing.F) {
	for s := breaker.Closed; s <= breaker.Shadow; s++ {
		f.Add(s.String())
	}
	f.Add("calls")
	f.Add("ignored")
	f.Add("Half-open")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range []interface {
			encoding.TextUnmarshaler
			encoding.TextMarshaler
		}{new(breaker.State)} {
			if v.UnmarshalText([]byte(text)) != nil {
				continue
			}
			again, err := v.MarshalText()
			require.NoError(t, err)
			require.Equal(t, text, string(again))
		}
	})
}
