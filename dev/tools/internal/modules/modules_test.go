package modules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tools/internal/modules"
)

func TestModulesForDevelopmentGetNoReleaseTag(t *testing.T) {
	all, err := modules.List(t.Context(), "../../../..")
	require.NoError(t, err)
	aside := map[string]bool{}
	for _, m := range all {
		if strings.HasPrefix(m.Dir, "dev/") || m.Dir == "examples" {
			aside[m.Dir] = true
			require.False(t, m.Released(), m.Dir)
		} else {
			require.True(t, m.Released(), m.Dir)
		}
	}
	require.Equal(t, map[string]bool{
		"dev/bench": true, "dev/proving": true, "dev/soak": true, "dev/tests": true, "dev/tools": true, "examples": true,
	}, aside)
}
