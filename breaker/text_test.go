package breaker_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func TestConfigReadsForceFromJSON(t *testing.T) {
	for _, state := range []breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow} {
		var c breaker.Config
		require.NoError(t, json.Unmarshal([]byte(`{"Force":"`+string(state)+`"}`), &c))
		require.NoError(t, c.Validate())
		require.Equal(t, state, breaker.New("b", c).State())
	}
	var c breaker.Config
	require.NoError(t, json.Unmarshal([]byte(`{"Force":"trial"}`), &c))
	require.ErrorContains(t, c.Validate(), `Force is "trial"`)
}
