package alert

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStateOfMoreThan16MiBIsNotWritten(t *testing.T) {
	state := func(extra int) *savedState {
		return &savedState{Rules: map[string]savedRule{"": {Annotations: map[string]string{"a": strings.Repeat("x", extra)}}}}
	}
	empty, err := state(1).encode()
	require.NoError(t, err)
	most := 16<<20 - len(empty) + 1
	content, err := state(most).encode()
	require.NoError(t, err)
	require.Len(t, content, 16<<20)
	_, err = decodeState(content)
	require.NoError(t, err)
	_, err = state(most + 1).encode()
	require.ErrorContains(t, err, "more than 16777216")
}
