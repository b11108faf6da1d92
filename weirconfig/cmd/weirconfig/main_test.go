package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckPrintsFaultsAndSetsTheExitStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("good.yaml", "gates: {payments: {}}")
	write("bad.yaml", "gates:\n  payments:\n    burst: 3\n    max_wait: -1s\n")
	for _, c := range []struct {
		args        []string
		status      int
		out, errOut string
	}{
		{nil, 2, "", usage},
		{[]string{"check"}, 2, "", usage},
		{[]string{"chek", "good.yaml"}, 2, "", usage},
		{[]string{"check", "good.yaml"}, 0, "", ""},
		{[]string{"check", "bad.yaml", "good.yaml"}, 1, "bad.yaml:3: gates.payments: burst is 3, must be 0 without a rate\n" +
			"bad.yaml:4: gates.payments: max_wait is -1s, must be at least 0\n", ""},
		{
			[]string{"check", "good.yaml", filepath.Join("no", "file")},
			1,
			"weirconfig: open " + filepath.Join("no", "file") + ": no such file or directory\n", "",
		},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, c.status, run(c.args, &out, &errOut), c.args)
		require.Equal(t, c.out, out.String(), c.args)
		require.Equal(t, c.errOut, errOut.String(), c.args)
	}
}
