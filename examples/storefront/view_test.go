package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScreenIsRestored(t *testing.T) {
	var out bytes.Buffer
	v := &screenView{out: &out, size: func() (width, height int) { return 40, 5 }}

	v.draw(outageSnapshot())
	v.draw(outageSnapshot())
	drawn := out.String()
	v.close(outageSnapshot())

	require.Equal(t, 1, strings.Count(drawn, enterScreen))
	require.Equal(t, 2*4, strings.Count(drawn, "\r\n"), "two screens of five lines")
	after, found := strings.CutPrefix(out.String(), drawn+leaveScreen)
	require.True(t, found, "close leaves the alternate screen")
	require.NotContains(t, after, "\x1b", "the last snapshot is plain text")
	require.Contains(t, after, "Prometheus")
}

func TestCloseWithoutDrawKeepsTheScreen(t *testing.T) {
	var out bytes.Buffer
	v := &screenView{out: &out, size: func() (width, height int) { return 80, 24 }}
	v.close(outageSnapshot())
	require.NotContains(t, out.String(), "\x1b")
}

func TestLinesPrintEachEventOnce(t *testing.T) {
	var out bytes.Buffer
	v := newLineView(&out)
	f := outageSnapshot()
	v.draw(f)
	late := event{at: time.Second, text: "seen late"}
	f.events = inOrder(f.events, []event{late})
	v.draw(f)
	v.draw(f)
	v.close(f)

	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 4, "three lines")
	require.Equal(t, line(f, outageSnapshot().events), lines[0])
	require.Equal(t, line(f, []event{late}), lines[1])
	require.Equal(t, line(f, nil), lines[2])
}

func TestNewViewChoosesByTheOutput(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	require.IsType(t, &lineView{}, newView(file))
	require.Equal(t, time.Second, newView(file).every())
}
