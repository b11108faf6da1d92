package keytext_test

import (
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/keytext"
)

type (
	namedString string
	twoStrings  struct{ a, b string }
	mixedStruct struct {
		n    int
		tags [2]string
		any  any
	}
)

func TestSizeIsTheTextThatAKeyRefersTo(t *testing.T) {
	require.Equal(t, 5, keytext.Size("hello"))
	require.Equal(t, 5, keytext.Size(namedString("hello")))
	require.Equal(t, keytext.MaxKey+1, keytext.Size(strings.Repeat("x", 5000)))
	require.Equal(t, keytext.MaxKey+1, keytext.Size(namedString(strings.Repeat("x", 5000))))
	require.Zero(t, keytext.Size(7))
	require.Zero(t, keytext.Size([3]int16{1, 2, 3}))
	require.Equal(t, 7, keytext.Size(twoStrings{"abc", "defg"}))
	require.Equal(t, 5000, keytext.Size(twoStrings{a: strings.Repeat("x", 5000)}), "a struct cannot be shortened")
	require.Equal(t, 3, keytext.Size(mixedStruct{n: 1, tags: [2]string{"a", "bc"}}))
	require.Equal(t, int(unsafe.Sizeof(""))+4, keytext.Size(mixedStruct{any: "text"}), "an interface refers to a value of its own")
}

// FuzzOwn checks the properties of kept keys: they are bounded, keep short keys as they are, tell
// long keys apart and do not change when they are bounded again.
func FuzzOwn(f *testing.F) {
	f.Add("short", "other", 1)
	f.Add("a", "b", 300)
	f.Fuzz(func(t *testing.T, one, other string, times int) {
		times = max(times, 0) % 1000
		one, other = strings.Repeat("x", times)+one, strings.Repeat("x", times)+other
		a, b := keytext.Own(one), keytext.Own(other)
		require.LessOrEqual(t, len(a), keytext.MaxKey)
		require.Equal(t, one == other, a == b)
		require.Equal(t, a, keytext.Bounded(one))
		require.Equal(t, a, keytext.Own(a))
		require.Equal(t, namedString(a), keytext.Own(namedString(one)))
		if len(one) <= keytext.MaxKey {
			require.Equal(t, one, a)
		}
		label := keytext.Label(one)
		require.LessOrEqual(t, len(label), keytext.MaxKey)
		require.True(t, utf8.ValidString(label))
	})
}

func TestOwnDoesNotKeepALargerString(t *testing.T) {
	large := strings.Repeat("x", 1000)
	own := keytext.Own(large[:10])
	require.NotSame(t, unsafe.StringData(large), unsafe.StringData(own))
	require.Equal(t, twoStrings{"a", "b"}, keytext.Own(twoStrings{"a", "b"}), "other types stay as they are")
}

func TestLabelOfOtherTypes(t *testing.T) {
	require.Equal(t, "42", keytext.Label(42))
	require.Equal(t, "{a b}", keytext.Label(twoStrings{"a", "b"}))
	require.Equal(t, "a\uFFFDb", keytext.Label("a\xffb"))
	require.Equal(t, strings.Repeat("é", 128), keytext.Label(strings.Repeat("é", 200)))
	require.Equal(t, "x"+strings.Repeat("é", 127), keytext.Label("x"+strings.Repeat("é", 200)), "no half of a letter")
}

func TestSizeOfUsualKeysAllocatesNothing(t *testing.T) {
	key := strings.Repeat("x", 20)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = keytext.Bounded(key) + keytext.Bounded("constant"); _ = keytext.Bounded(7) }))
}
