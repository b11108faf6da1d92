package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny is a world in which a few errors come before all successes.
const tiny = `
title: tiny
service: {servers: 1000000, queue: 0, time: lognormal 1s 0.1}
load: [{rate: 200/s, timeout: 10s}]
faults: [{from: 0s, to: 40s, error_rate: 5%, fail_time: 1ms}]
for: 40s
guards: [{name: a}]
`

func write(t *testing.T, dir, name, text string) string {
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestWorldsOfFilesAreJudged(t *testing.T) {
	file := write(t, t.TempDir(), "tiny.yaml", tiny)
	var out bytes.Buffer
	require.NoError(t, run([]string{"-config", file, "-guards", "weir,gobreaker"}, &out))
	require.Contains(t, out.String(), "tiny: 200/s for 40s; lognormal 1s 0.1; elastic; timeout 10s; 0s–40s: 5 % fail after 1ms")
	require.Contains(t, out.String(), "gobreaker, by rate keeps its promises: regret 0 %")
}

// A list is right if it has each promise that is broken, and no other one.
func TestTheListIsChecked(t *testing.T) {
	dir := t.TempDir()
	check := func() error { return run([]string{"-check", dir, "-guards", "gobreaker"}, io.Discard) }
	require.ErrorIs(t, check(), os.ErrNotExist, "there is no list")
	write(t, dir, "broken.txt", "# none\n")
	require.EqualError(t, check(), dir+" has no worlds")
	write(t, dir, "tiny.yaml", tiny)
	require.NoError(t, check())
	write(t, dir, "broken.txt", "tiny\tgobreaker, by rate\tstuck\tIt is.\n")
	require.EqualError(t, check(), "the list is not right:\n"+
		"  tiny: gobreaker, by rate no longer breaks its promise (stuck): remove it from the list")
	write(t, dir, "broken.txt", "tiny stuck\n")
	require.ErrorContains(t, check(), "broken.txt: line 1 must have a world, a guard, a promise and a cause")
}

func TestRandomWorldsAreTheSameInEachRun(t *testing.T) {
	table := func(arguments ...string) string {
		var out bytes.Buffer
		require.NoError(t, run(append(arguments, "-worlds", "2", "-guards", "gobreaker"), &out))
		text, _, _ := strings.Cut(out.String(), "worlds in") // and then how long it took
		return text
	}
	first := table("-seed", "3")
	require.Equal(t, first, table("-seed", "3"))
	require.Contains(t, first, "of 2")
}

// The worlds in which a promise is broken are written to files that can be read again.
func TestWorldsAreWritten(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run([]string{"-worlds", "8", "-seed", "5", "-guards", "failsafe", "-out", dir}, &out))
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files, out.String())
	require.Contains(t, out.String(), fmt.Sprintf("failsafe limiter: %d worlds break a promise", len(files)))
	var again bytes.Buffer
	require.NoError(t, run([]string{"-config", files[0], "-guards", "failsafe"}, &again))
	require.Contains(t, again.String(), "failsafe limiter   breaks ")
}

func TestTheSearchEnds(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-for", "1ms", "-guards", "gobreaker"}, &out))
	require.Contains(t, out.String(), "gobreaker, by rate: found ")
}

func TestThePartOfThePageIsWritten(t *testing.T) {
	file := write(t, t.TempDir(), "page.md", "# Page\n")
	require.NoError(t, run([]string{"-page", file, "-worlds", "2", "-seed", "3", "-guards", "gobreaker"}, io.Discard))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^# Page\n\n## Whom it harms\n.*\| gobreaker, by rate \|`, string(text))
	require.NotContains(t, string(text), "Known worlds")

	dir := t.TempDir()
	write(t, dir, "tiny.yaml", "# Errors come\n# first.\n"+tiny)
	require.NoError(t, run([]string{"-page", file, "-check", dir, "-worlds", "2", "-seed", "3", "-guards", "gobreaker"}, io.Discard))
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n| tiny: tiny | 0 | Errors come first. |\n")
}

func TestFaultyArgumentsAreErrors(t *testing.T) {
	for text, arguments := range map[string][]string{
		`unexpected argument "surplus"`: {"surplus"},
		"-worlds must be at least 1":    {"-worlds", "0"},
		`unknown guard "x"`:             {"-guards", "weir,x"},
		"no such file":                  {"-config", "missing.yaml"},
		"is unknown, must be one of":    {"-config", write(t, t.TempDir(), "a.yaml", "colour: red")},
	} {
		require.ErrorContains(t, run(arguments, io.Discard), text)
	}
}
