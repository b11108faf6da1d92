package sim_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunWorksInAProgramAndPrintsNothing(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", "./testdata/program").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}
