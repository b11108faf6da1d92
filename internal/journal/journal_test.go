package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/journal"
	"github.com/weir-go/weir/internal/testenv"
)

const format = "test 1"

// opened opens a journal that the end of the test closes.
func opened(t *testing.T, path string) (j *journal.Journal, damaged int) {
	t.Helper()
	j, damaged, err := journal.Open(path, format)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j, damaged
}

// reopened returns what the file of a journal has, and how many of its records are damaged.
func reopened(t *testing.T, path string) (map[string]string, int) {
	t.Helper()
	j, damaged := opened(t, path)
	defer j.Close()
	return contentOf(j), damaged
}

func contentOf(j *journal.Journal) map[string]string {
	content := map[string]string{}
	for key, value := range j.All {
		content[key] = string(value)
	}
	return content
}

func TestCommittedChangesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, damaged := opened(t, path)
	require.Zero(t, damaged)
	require.NoError(t, j.Commit())
	_, err := os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "an empty journal has no file")
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Set("b", "two\nlines"))
	require.NoError(t, j.Commit())
	require.NoError(t, j.Set("c", []int{3}))
	j.Delete("a")
	j.Delete("unknown")
	require.NoError(t, j.Commit())
	require.NoError(t, j.Set("d", 4)) // not committed
	require.NoError(t, j.Close())
	content, damaged := reopened(t, path)
	require.Equal(t, map[string]string{"b": `"two\nlines"`, "c": "[3]"}, content)
	require.Zero(t, damaged)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

func TestCommitWithoutChangesWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Commit())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ToUpper(before), 0o600))
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Commit())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, bytes.ToUpper(before), after)
}

func TestChangesAreAppendedUntilMostOfTheFileIsOutdated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	for i := range 1000 {
		require.NoError(t, j.Set(fmt.Sprint("key", i), strings.Repeat("x", 100)))
	}
	require.NoError(t, j.Commit())
	last, err := os.Stat(path)
	require.NoError(t, err)
	live, replaced := last.Size(), 0
	for i := range 400 {
		require.NoError(t, j.Set("key1", strings.Repeat("y", 1000+i%2)))
		require.NoError(t, j.Commit())
		info, err := os.Stat(path)
		require.NoError(t, err)
		if os.SameFile(last, info) {
			require.Less(t, info.Size()-last.Size(), int64(1100))
		} else {
			replaced++
		}
		require.LessOrEqual(t, info.Size(), 2*(live+1000)+64<<10)
		last = info
	}
	require.Contains(t, []int{1, 2}, replaced, "400 kB are about twice what 240 kB have room for")
	require.NoError(t, j.Close())
	content, _ := reopened(t, path)
	require.Len(t, content, 1000)
	require.Len(t, content["key1"], 1003)
}

// The last commit is cut at each of its bytes, as by a loss of power.
func TestTornCommitKeepsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Set("b", 1))
	require.NoError(t, j.Commit())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, j.Set("a", 2))
	require.NoError(t, j.Set("b", 2))
	require.NoError(t, j.Commit())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.True(t, bytes.HasPrefix(whole, before))
	second := bytes.IndexByte(whole[len(before):], '\n') + 1 + len(before)
	for end := len(before); end <= len(whole); end++ {
		require.NoError(t, os.WriteFile(path, whole[:end], 0o600))
		j, damaged := opened(t, path)
		want := map[string]string{"a": "1", "b": "1"}
		if end >= second {
			want["a"] = "2"
		}
		if end == len(whole) {
			want["b"] = "2"
		}
		require.Equal(t, want, contentOf(j), end)
		torn := end != len(before) && end != second && end != len(whole)
		require.Equal(t, torn, damaged == 1, end)
		require.NoError(t, j.Set("c", end))
		require.NoError(t, j.Commit())
		require.NoError(t, j.Close())
		want["c"] = fmt.Sprint(end)
		content, damaged := reopened(t, path)
		require.Equal(t, want, content, "a record after a torn one")
		require.Zero(t, damaged)
	}
}

func TestFlippedBitCostsOneRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	for i := range 4 {
		require.NoError(t, j.Set(fmt.Sprint("key", i), i))
	}
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := range len(whole) * 8 {
		damaged := bytes.Clone(whole)
		damaged[at/8] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		content, n := reopened(t, path)
		require.GreaterOrEqual(t, n, 1, at)
		lost := 1
		switch {
		case at/8 < len(format)+1:
			lost = 0
		case whole[at/8] == '\n' && at/8 < len(whole)-1:
			lost = 2 // the two records are one line now
		}
		if at/8 == len(format) {
			lost = 1 // the header and the first record are one line
		}
		require.Len(t, content, 4-lost, at)
		for key, value := range content {
			require.Equal(t, key, "key"+value)
		}
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	other, _, err := journal.Open(path, "test 2")
	require.NoError(t, err)
	require.NoError(t, other.Set("a", 1))
	require.NoError(t, other.Commit())
	require.NoError(t, other.Close())
	version2, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"another format": version2, "empty": {}, "script": []byte("#!/bin/sh\n"), "zeros": make([]byte, 4096),
		"too long": make([]byte, 2*journal.Limit+64<<10+1),
	} {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, _, err := journal.Open(path, format)
		require.ErrorAs(t, err, new(*journal.ForeignError), name)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got), "%s: nothing is written", name)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, _, err = journal.Open(path, format)
	require.ErrorContains(t, err, "not a regular file")
}

func TestFailedCommitIsRepeated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "journal")
	j, _ := opened(t, path)
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Commit())
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, j.Set("b", 2))
	require.Error(t, j.Commit())
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	content, _ := reopened(t, path)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, content)
}

// Commit without changes notices it too.
func TestFileThatOthersChangedIsWrittenAgain(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"foreign": func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		for _, changes := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "journal")
			j, _ := opened(t, path)
			require.NoError(t, j.Set("a", 1))
			require.NoError(t, j.Commit())
			require.NoError(t, harm(path))
			want := map[string]string{"a": "1"}
			if changes {
				require.NoError(t, j.Set("b", 2))
				want["b"] = "2"
			}
			require.NoError(t, j.Commit())
			require.NoError(t, j.Close())
			content, damaged := reopened(t, path)
			require.Equal(t, want, content, name)
			require.Zero(t, damaged)
		}
	}
}

func TestCurrentRecordsHaveALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	require.NoError(t, j.Set("a", 1))
	require.NoError(t, j.Commit())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	value := strings.Repeat("x", 1<<20)
	for i := range 16 {
		require.NoError(t, j.Set(fmt.Sprint("b", i), value))
	}
	require.ErrorContains(t, j.Commit(), "more than 16777216")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	j.Delete("b0")
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	content, _ := reopened(t, path)
	require.Len(t, content, 16)
}

func TestOneProcessAtATime(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the standard library has no lock for this system")
	}
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	_, _, err := journal.Open(path, format)
	require.ErrorContains(t, err, "lock")
	require.NoError(t, j.Close())
	_, damaged := opened(t, path)
	require.Zero(t, damaged)
}

func TestAnEmptyMapNeedsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _ := opened(t, path)
	require.NoError(t, j.Set("a", 1))
	j.Delete("a")
	require.NoError(t, j.Commit())
	require.NoFileExists(t, path)
	require.NoError(t, j.Set("a", 2))
	require.NoError(t, j.Commit())
	require.NoError(t, os.Remove(path))
	j.Delete("a")
	require.NoError(t, j.Commit())
	require.NoError(t, j.Set("b", 3))
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	content, _ := reopened(t, path)
	require.Equal(t, map[string]string{"b": "3"}, content)
}

func TestValuesThatJSONCannotWriteAreRefused(t *testing.T) {
	j, _ := opened(t, filepath.Join(t.TempDir(), "journal"))
	require.NoError(t, j.Set("a", 1))
	require.Error(t, j.Set("a", func() {}))
	require.Equal(t, map[string]string{"a": "1"}, contentOf(j))
}

// Random changes are compared with a map. After some of the commits, the end of the last commit is
// lost, and each key has its old or its new value.
func TestJournalMatchesAMap(t *testing.T) {
	for seed := range uint64(testenv.Repeat(50, 3)) {
		random := rand.New(rand.NewPCG(seed, 0))
		path := filepath.Join(t.TempDir(), "journal")
		j, _ := opened(t, path)
		saved, want := map[string]string{}, map[string]string{}
		for range 100 {
			for range random.IntN(5) {
				key := fmt.Sprint("key", random.IntN(8))
				if random.IntN(3) == 0 {
					j.Delete(key)
					delete(want, key)
					continue
				}
				value := strings.Repeat("v", random.IntN(2000))
				require.NoError(t, j.Set(key, value))
				text, err := json.Marshal(value)
				require.NoError(t, err)
				want[key] = string(text)
			}
			before, _ := os.ReadFile(path)
			require.NoError(t, j.Commit())
			require.Equal(t, want, contentOf(j))
			if random.IntN(4) > 0 {
				saved = maps.Clone(want)
				continue
			}
			require.NoError(t, j.Close())
			if whole, err := os.ReadFile(path); err == nil && bytes.HasPrefix(whole, before) && len(before) > 0 {
				end := len(before) + random.IntN(len(whole)-len(before)+1)
				require.NoError(t, os.WriteFile(path, whole[:end], 0o600))
			}
			j, _ = opened(t, path)
			got := contentOf(j)
			for i := range 8 {
				key := fmt.Sprint("key", i)
				require.True(t, got[key] == saved[key] || got[key] == want[key], "seed %d: %s", seed, key)
			}
			saved, want = got, maps.Clone(got)
		}
	}
}
