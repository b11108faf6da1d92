package weir_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test that waits in real time is slow on a good day and flaky on a bad one. No linter
// knows what a bubble is, so this goes by the import.
func TestOnlyTestsInBubblesSleep(t *testing.T) {
	const call = "time." + "Sleep("
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := readFile(name)
		if strings.Contains(text, call) && !strings.Contains(text, `"testing/synctest"`) {
			t.Errorf("%s sleeps outside a bubble", name)
		}
		return err
	})
	require.NoError(t, err)
}
