package weir_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests that sleep in real time are slow and flaky. Files that sleep must import testing/synctest.
func TestOnlySynctestTestsSleep(t *testing.T) {
	const call = "time." + "Sleep("
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := readFile(name)
		if strings.Contains(text, call) && !strings.Contains(text, `"testing/synctest"`) {
			t.Errorf("%s sleeps but does not import testing/synctest", name)
		}
		return err
	})
	require.NoError(t, err)
}
