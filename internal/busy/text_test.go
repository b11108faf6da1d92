package busy_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/busy"
)

// shownText returns the text of the only key of a sketch.
func shownText[K comparable](t *testing.T, show bool, key K) string {
	t.Helper()
	s := busy.New[K](show)
	s.Add(key)
	keys := s.Busiest("", 2)
	require.Len(t, keys, 1)
	return keys[0].Key
}

func TestKeysAreHashedUnlessTheyAreShown(t *testing.T) {
	name := shownText(t, false, "alice")
	require.Regexp(t, `^#[0-9a-f]{12}$`, name)
	require.Equal(t, name, shownText(t, false, "alice"), "in another sketch")
	require.NotEqual(t, name, shownText(t, false, "bob"))
	require.Equal(t, "alice", shownText(t, true, "alice"))
}

func TestTextsOfKeys(t *testing.T) {
	for _, c := range []struct {
		key  any
		want string
	}{
		{"", "(empty)"},
		{17, "17"},
		{netip.MustParseAddr("192.0.2.1"), "192.0.2.1"},
		{struct{ a, b string }{"x", "y"}, "{x y}"},
		{strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{strings.Repeat("a", 65), strings.Repeat("a", 64) + "…"},
		{strings.Repeat("€", 40), strings.Repeat("€", 21) + "…"},
		{"\xff\x01", "ff01"},
		{strings.Repeat("\xff", 32), strings.Repeat("ff", 32)},
		{strings.Repeat("\xff", 33), strings.Repeat("ff", 32) + "…"},
		{math.NaN(), "NaN"},
	} {
		require.Equal(t, c.want, shownText(t, true, c.key))
		if s, ok := c.key.(string); ok {
			require.Equal(t, c.want, shownText(t, true, s))
		}
	}
}

func TestKeysAreForgottenWhenTheyAreNoLongerShown(t *testing.T) {
	s := busy.New[string](true)
	s.Add("alice")
	s.Show(true)
	require.Len(t, s.Busiest("", 9), 1)
	s.Show(false)
	require.Empty(t, s.Busiest("", 9))
	s.Add("alice")
	require.Equal(t, shownText(t, false, "alice"), s.Busiest("", 9)[0].Key)
	s.Show(true)
	s.Add("alice")
	require.Equal(t, "alice", s.Busiest("", 9)[0].Key)
}

func TestNilSketchDoesNothing(t *testing.T) {
	var s *busy.Sketch[string]
	s.Show(true)
	s.Add("alice")
	require.Empty(t, s.Busiest("", 9))
}

// lockingKey is a key whose text is computed by user code.
type lockingKey struct{ of *busy.Sketch[lockingKey] }

func (k lockingKey) String() string {
	k.of.Show(false) // would hang under the lock
	return "secret"
}

func TestTextIsNotKeptIfKeysAreNoLongerShown(t *testing.T) {
	s := busy.New[lockingKey](true)
	s.Add(lockingKey{s})
	require.NotEqual(t, "secret", s.Busiest("", 9)[0].Key)
}
