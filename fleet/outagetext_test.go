package fleet_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

func TestPoliciesAreReadAndWrittenAsText(t *testing.T) {
	for text, policy := range map[string]fleet.OnOutage{
		"fail-open": fleet.FailOpen, "fail-closed": fleet.FailClosed, "fail-local": fleet.FailLocal, "fail-error": fleet.FailError, "": "",
	} {
		var read struct{ OnOutage fleet.OnOutage }
		require.NoError(t, json.Unmarshal([]byte(`{"OnOutage":"`+text+`"}`), &read))
		require.Equal(t, policy, read.OnOutage)
		written, err := json.Marshal(read)
		require.NoError(t, err)
		require.Equal(t, `{"OnOutage":"`+text+`"}`, string(written))
	}
}

func TestValidateRefusesUnknownPolicies(t *testing.T) {
	l := connect(t)
	for _, policy := range []fleet.OnOutage{"", "open", "Fail-Open", "fail-open ", "0", "\x00"} {
		err := fleet.Config{Link: l, Limits: []fleet.Limit{hourlyBucket}, OnOutage: policy}.Validate()
		require.EqualError(t, err, fmt.Sprintf("fleet: OnOutage is %q, must be fail-open, fail-closed, fail-local or fail-error", string(policy)))
	}
}
