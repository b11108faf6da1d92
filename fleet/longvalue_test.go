package fleet_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

var numberPattern = regexp.MustCompile(`\d+`)

// A value takes at most 30 kB. A longer value is foreign, even if it could be parsed.
func TestAValueOfMoreThan30KilobytesIsForeign(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, limit := range tenPerSecond {
		if name == "log" {
			continue // has an entry for each token
		}
		b, key := newLimiter(l, "long "+name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off}), newKey()
		_, err := b.Take(t.Context(), key, 1)
		require.NoError(t, err)
		held := b.StateKeys(key)[0]
		value := direct.Get(t.Context(), held).Val()
		spots := numberPattern.FindAllStringIndex(value, -1)
		require.NotEmpty(t, spots, name)
		for _, spot := range spots {
			long := value[:spot[0]] + strings.Repeat("0", 30_001) + value[spot[0]:]
			require.NoError(t, direct.Set(t.Context(), held, long, 0).Err())
			_, err := b.Take(t.Context(), key, 1)
			require.ErrorIs(t, err, fleet.ErrForeign, "%s: %s", name, value)
		}
	}
	b, key := newLimiter(l, "parts", tenPerSecond["sliding"], fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off}), newKey()
	for size, foreign := range map[int]bool{29_999: false, 30_003: true} {
		parts := "w100000" + strings.Repeat(" 1:0", size/4-1)
		require.Len(t, parts, size)
		require.NoError(t, direct.Set(t.Context(), b.StateKeys(key)[0], parts, 0).Err())
		_, err := b.Take(t.Context(), key, 1)
		require.Equal(t, foreign, err != nil, "%d bytes: %v", size, err)
	}
}
