package breaker_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestConfigReadsInitialFromJSON(t *testing.T) {
	for _, state := range []breaker.State{
		breaker.Closed, breaker.Open, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow,
	} {
		var c breaker.Config
		require.NoError(t, json.Unmarshal([]byte(`{"Initial":"`+string(state)+`"}`), &c))
		require.NoError(t, c.Validate())
		require.Equal(t, state, breaker.New("b", c).State())
	}
	var c breaker.Config
	require.NoError(t, json.Unmarshal([]byte(`{"Initial":"trial"}`), &c))
	require.ErrorContains(t, c.Validate(), `Initial is "trial"`)
}

func TestEmptyInitialIsClosed(t *testing.T) {
	require.Equal(t, breaker.Closed, breaker.New("b", breaker.Config{}).State())
	b := breaker.New("b", breaker.Config{})
	require.NoError(t, b.Reconfigure(breaker.Config{Initial: ""}))
	require.Equal(t, breaker.Closed, b.State())
}
