package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The examples are in raw strings, which the scanner does not read: they must not count here.

func TestScanFindsTextThatIsHardToRead(t *testing.T) {
	for text, want := range map[string]string{
		`Who waits is charged later.`:             `"who …"`,
		`It is free; whoever calls pays.`:         `"who …"`,
		`Tell the caller who asked.`:              ``,
		`Who are you?`:                            ``,
		`What is refused never reaches it.`:       `"what …"`,
		`What is the limit of a gate?`:            ``,
		`It takes 48 bytes a bucket.`:             `"a call"`,
		`It takes 48 bytes per bucket.`:           ``,
		`It allows 200 a second.`:                 ``,
		`Nobody waits for the lock.`:              `a vague pronoun`,
		`The slot is gone for good.`:              `a vague pronoun`,
		`No goroutine waits for the lock.`:        ``,
		`The client tries in vain.`:               `a figure of speech`,
		strings.Repeat(`a word `, 20) + `too.`:    `sentence over`,
		strings.Repeat(`a word `, 20) + `.`:       ``,
		strings.Repeat(`a word `, 20) + `. End.`:  ``,
		strings.Repeat(`https://a/b `, 21) + `.`:  ``,
		`| ` + strings.Repeat(`word `, 50) + ` |`: ``,
	} {
		got := scan("page.md", splitMarkdown(text))
		if want == "" {
			require.Empty(t, got, text)
			continue
		}
		require.Len(t, got, 1, text)
		require.Contains(t, got[0].String(), "page.md:1: "+want)
	}
}

func TestTextBeyondColumn100(t *testing.T) {
	fits, wide := strings.Repeat("x", 97), strings.Repeat("x", 98)
	for text, want := range map[string]int{
		"// " + fits:                        0,
		"// " + wide:                        1,
		"\t// " + fits[4:]:                  0,
		"\t// " + fits[3:]:                  1,
		"// " + strings.Repeat("ü", 97):     0,
		"var a int // " + fits[10:]:         0,
		"var a int // " + fits[9:]:          1,
		`var a = "// ` + wide + `"`:         0,
		"// https://" + wide:                0,
		"//nolint " + wide:                  0,
		"// Output:\n// " + wide:            0,
		"// Output:\nvar a int\n// " + wide: 1,
	} {
		require.Len(t, tooWide("a.go", "package p\n"+text), want, text)
	}
	wide += "xyz"
	for text, want := range map[string]int{
		wide[1:]:                       0,
		wide:                           1,
		"- " + wide:                    1,
		"| " + wide:                    0,
		"    " + wide:                  0,
		"```\n" + wide + "\n```":       0,
		"```\n```\n" + wide:            1,
		"\n[a]: https://" + wide:       0,
		"See https://" + wide + " too": 0,
	} {
		require.Len(t, tooWide("a.md", text), want, text)
	}
	require.Empty(t, tooWide("a.js", "// "+wide))
}

func TestSplitGoReadsCommentsAndMessages(t *testing.T) {
	const source = `package p

// Two lines of
// one comment.
var x = "a message of five words" // trailing

/* Another
 * comment. */

// A list:
//   - one
//   - two
//
//	code := 1
var y, z = "too short", ` + "`a raw string is not read`" + `
`
	require.ElementsMatch(t, []block{
		{3, []string{"Two lines of", "one comment."}},
		{5, []string{"a message of five words"}},
		{5, []string{"trailing"}},
		{7, []string{"Another", "comment."}},
		{10, []string{"A list:"}},
		{11, []string{"- one"}},
		{12, []string{"- two"}},
	}, splitGo(source))
}

func TestSplitMarkdownSkipsCodeAndSeparatesItems(t *testing.T) {
	const page = "# Title\n\nOne\nparagraph.\n\n```go\n// code\n```\n- one\n- two\n  lines\n1. three\n"
	require.Equal(t, []block{
		{1, []string{"# Title"}},
		{3, []string{"One", "paragraph."}},
		{9, []string{"- one"}},
		{10, []string{"- two", "lines"}},
		{12, []string{"1. three"}},
	}, splitMarkdown(page))
}

func TestSplitCommentsReadsWholeLinesOnly(t *testing.T) {
	split := splitterFor("Makefile")
	require.Equal(t, []block{{2, []string{"One", "comment."}}}, split("#!/bin/sh\n# One\n## comment.\nall: x # rule\n"))
	require.Equal(t, []block{{1, []string{"[a]: b"}}, {2, []string{"[c]: d"}}}, splitMarkdown("[a]: b\n[c]: d\n"))
	require.Nil(t, splitterFor("a/testdata/b.go"))
	require.Nil(t, splitterFor("LICENSE"))
}

func TestRunFailsAboveTheLimitAndAsksForALowerOneBelowIt(t *testing.T) {
	dir := t.TempDir()
	git := exec.CommandContext(t.Context(), "git", "init", "--quiet", dir)
	require.NoError(t, git.Run())
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte(`Nobody waits.`), 0o600))

	for limit, want := range map[string]struct{ output, err string }{
		"0\n": {`page.md:1: a vague pronoun`, "1 places are hard to read, and the limit is 0"},
		"1\n": {"    1  in all\n", ""},
		"3\n": {"from 3 to 1\n", ""},
		"-1":  {"", "must hold one number, at least 0"},
		"one": {"", "must hold one number, at least 0"},
	} {
		file := filepath.Join(t.TempDir(), "limit")
		require.NoError(t, os.WriteFile(file, []byte(limit), 0o600))
		output, err := run(t.Context(), []string{"-limit", file, dir})
		require.Contains(t, output, want.output, limit)
		if want.err == "" {
			require.NoError(t, err, limit)
			continue
		}
		require.ErrorContains(t, err, want.err, limit)
	}
}
