package fleet_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

func TestPoliciesAreReadAndWrittenAsText(t *testing.T) {
	for text, policy := range map[string]fleet.OnOutage{
		"fail-open": fleet.FailOpen, "fail-closed": fleet.FailClosed, "fail-local": fleet.FailLocal, "fail-error": fleet.FailError, "": 0,
	} {
		var read struct{ OnOutage fleet.OnOutage }
		require.NoError(t, json.Unmarshal([]byte(`{"OnOutage":"`+text+`"}`), &read))
		require.Equal(t, policy, read.OnOutage)
		written, err := policy.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		if policy != 0 {
			require.Equal(t, text, policy.String())
		}
	}
	for _, text := range []string{"open", "Fail-Open", "fail-open ", "0", "\x00"} {
		policy := fleet.FailLocal
		require.ErrorContains(t, policy.UnmarshalText([]byte(text)), "must be fail-open, fail-closed, fail-local or fail-error", "%q", text)
		require.Equal(t, fleet.FailLocal, policy)
	}
	_, err := fleet.OnOutage(9).MarshalText()
	require.EqualError(t, err, "fleet: OnOutage is 9, must be FailOpen, FailClosed, FailLocal or FailError")
	require.Equal(t, "OnOutage(9)", fleet.OnOutage(9).String())
}
