package testenv_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// recorder records how a test would end.
type recorder struct{ ended string }

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.ended = "fail: " + fmt.Sprint(args...) }
func (r *recorder) Skip(args ...any)  { r.ended = "skip: " + fmt.Sprint(args...) }

const missingReason = "no-such-server is not installed: run make deps"

func TestProgramFindsWhatIsInstalled(t *testing.T) {
	var r recorder
	path := testenv.Program(&r, "no-such-server", "go")
	if testing.Short() {
		require.Contains(t, r.ended, "skip: no-such-server is needed")
		return
	}
	require.Empty(t, r.ended)
	require.NotEmpty(t, path)
	status, skip := testenv.SkipAll(t.Output(), "go")
	require.Zero(t, status)
	require.False(t, skip)
}

func TestAMissingProgramSkipsTheTestAndFailsInCI(t *testing.T) {
	if testing.Short() {
		t.Skip("-short skips whatever CI is")
	}
	for ci, want := range map[string]struct {
		test, all string
		status    int
	}{
		"":     {"skip: " + missingReason, "skipped: " + missingReason + "\n", 0},
		"true": {"fail: " + missingReason, "FAIL: " + missingReason + "\n", 1},
	} {
		t.Run("CI="+ci, func(t *testing.T) {
			t.Setenv("CI", ci)
			var r recorder
			testenv.Program(&r, "no-such-server", "no-such-server-either")
			require.Equal(t, want.test, r.ended)
			testenv.Missing(&r, "no-such-server")
			require.Equal(t, want.test, r.ended)
			var out strings.Builder
			status, skip := testenv.SkipAll(&out, "no-such-server", "no-such-server-either")
			require.Equal(t, want.status, status)
			require.True(t, skip)
			require.Equal(t, want.all, out.String())
		})
	}
}

func TestRepeatReturnsTheLargeNumberOnlyInSoak(t *testing.T) {
	for soak, want := range map[string]int{"": 3, "false": 3, "true": 100} {
		t.Setenv("WEIR_SOAK", soak)
		require.Equal(t, want, testenv.Repeat(100, 3))
	}
}
