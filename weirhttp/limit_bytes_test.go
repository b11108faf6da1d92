package weirhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// Keys of 900 kB are nearly the longest that net/http accepts.
func TestLimitByDoesNotKeepLongKeys(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerHour(10)})
	key := weirhttp.FromHeader("X-Api-Key")
	h := weirhttp.LimitBy(func(r *http.Request) (limiter.Result, error) { return users.Take(key(r), 1), nil },
		weirhttp.LimitByConfig{Name: "users"})(okHandler)
	before := heapInUse()
	for i := range 100 {
		require.Equal(t, 200, request{key: fmt.Sprintf("%08d", i) + strings.Repeat("k", 900<<10)}.send(h).Code)
	}
	require.Less(t, heapInUse()-before, int64(10<<20), "90 MB came")
	require.Equal(t, 100, users.Len(), "each is a key of its own")
}

func TestMatchKnowsAClientOfAnyLength(t *testing.T) {
	long := strings.Repeat("k", 1000)
	for _, client := range []func(*http.Request) string{
		weirhttp.FromHeader("X-Api-Key"), func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies: []weirhttp.Policy{perMinute(1, 0)}, Client: client, Exempt: []weirhttp.Match{{Clients: []string{long, "short"}}},
		}).Handler(okHandler)
		for _, key := range []string{long, "short"} {
			for range 3 {
				require.Equal(t, 200, request{key: key}.send(h).Code)
			}
		}
		require.Equal(t, 200, request{key: long + "x"}.send(h).Code)
		require.Equal(t, 429, request{key: long + "x"}.send(h).Code)
	}
}
