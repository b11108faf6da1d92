package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheExampleRuns(t *testing.T) {
	charts := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, prove([]string{"-config", "../../prove.yaml", "-seeds", "2", "-charts", charts}, &out))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, "Most servers are gone for 40 s", lines[0])
	require.Equal(t, "2 runs of 1m40s for each guard, with seeds from 1", lines[1])
	require.Equal(t, "none defaults short limited throttle gobreaker oracle", strings.Join(strings.Fields(lines[3]), " "))
	require.Regexp(t, `^good %  +[1-9]`, lines[4])
	require.Contains(t, out.String(), "back after s")

	svg, err := os.Open(filepath.Join(charts, "prove.svg"))
	require.NoError(t, err)
	defer svg.Close()
	names := texts(t, svg)
	for name := range strings.FieldsSeq(lines[3]) {
		require.Contains(t, names, name)
	}
}

// texts returns the texts of an XML file.
func texts(t *testing.T, r io.Reader) (all []string) {
	for d := xml.NewDecoder(r); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
}

const tiny = `
service: {servers: 1, time: constant 1ms, queue: 0}
load: [{rate: 20/s, timeout: 1s}]
faults: [{from: 11s, to: 20s, down: true}]
guards: [{name: only, breaker: {consecutive_failures: 1}}]
seeds: 5
`

func write(t *testing.T, text string) (file string) {
	file = filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestSeedsChooseTheRandomNumbers(t *testing.T) {
	file := write(t, tiny)
	run := func(arguments ...string) string {
		var out bytes.Buffer
		require.NoError(t, prove(append([]string{"-config", file}, arguments...), &out))
		return out.String()
	}
	require.Contains(t, run(), "5 runs of 50s for each guard, with seeds from 1")
	twice := run("-seeds", "2")
	require.Equal(t, twice, run("-seeds", "2"))
	_, first, _ := strings.Cut(twice, "\n\n")
	_, other, _ := strings.Cut(run("-seeds", "2", "-seed", "9"), "\n\n")
	require.NotEqual(t, first, other)
}

func TestAFaultyFileIsAnError(t *testing.T) {
	file := write(t, strings.Replace(tiny, "consecutive_failures", "failures", 1))
	err := prove([]string{"-config", file}, io.Discard)
	require.ErrorContains(t, err, file+":5: guards[0].breaker.failures is unknown, must be one of buckets, classify,")
	require.ErrorIs(t, prove([]string{"-config", "missing.yaml"}, io.Discard), os.ErrNotExist)
	require.EqualError(t, prove([]string{"surplus"}, io.Discard), `prove: unexpected argument "surplus"`)
	require.Error(t, prove([]string{"-seeds", "x"}, io.Discard))
	require.ErrorIs(t, prove([]string{"-config", write(t, tiny), "-seeds", "1", "-charts", "/no/such"}, io.Discard), os.ErrNotExist)
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 7: "7", 1.239: "1.24", 12.34: "12.3", 99.96: "100", 123.4: "123", 1234567: "1234567", 0.001: "0.001",
	} {
		require.Equal(t, want, numberText(x))
	}
}
