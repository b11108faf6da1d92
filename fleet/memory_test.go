package fleet_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// memoryInUse returns the size of the heap.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has freed of pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// limitersWithTables returns limiters that store something per key in this process.
func limitersWithTables(t *testing.T) map[string]*fleet.Limiter {
	_, unavailable := unavailableLink(t)
	plenty := fleet.TokenBucket{Rate: limiter.PerSecond(1), Burst: 1_000_000}
	return map[string]*fleet.Limiter{
		"refusals": newLimiter(connect(t), "refusals", hourlyBucket, fleet.Config{OnOutage: fleet.FailError, MaxDenied: 500}),
		"leases":   newLimiter(connect(t), "leases", plenty, fleet.Config{OnOutage: fleet.FailError, MaxLease: 10}),
		"local":    newLimiter(unavailable, "local", hourlyBucket, fleet.Config{OnOutage: fleet.FailLocal, Share: 1, MaxKeys: 500}),
	}
}

// Clients can choose keys. A table uses a bounded number of bytes per key, however long the key is,
// and also if the key is a substring of a much longer string.
func TestLongKeysTakeNoMoreMemoryThanShortOnes(t *testing.T) {
	long := func(i int) string { return strconv.Itoa(i) + strings.Repeat("A", 1<<20) }
	for name, key := range map[string]func(i int) string{
		"long": long, "parts of something long": func(i int) string { return long(i)[:20] + "!" }, "parts": func(i int) string { return long(i)[:20] },
	} {
		for table, b := range limitersWithTables(t) {
			t.Run(table+", "+name, func(t *testing.T) {
				before := memoryInUse()
				for i := range 30 {
					k := key(i)
					for range 4 {
						_, err := b.Take(t.Context(), k, 1)
						require.NoError(t, err)
					}
				}
				require.Less(t, memoryInUse()-before, int64(2<<20), "bytes for 30 keys of 1 MB")
				runtime.KeepAlive(b)
			})
		}
	}
}

// More keys than a table holds, each of the greatest length that is not hashed: the bounds in
// SECURITY.md.
func TestTablesOfKeysAreBoundedInBytes(t *testing.T) {
	const longest = 3 * fleet.MaxKey
	for name, test := range map[string]struct{ keys, bytes int }{
		"refusals": {500, 200 + longest}, "leases": {10_000, 400 + longest}, "local": {500, 200 + longest},
	} {
		t.Run(name, func(t *testing.T) {
			b := limitersWithTables(t)[name]
			before := memoryInUse()
			for i := range test.keys * 3 / 2 {
				key := fmt.Sprintf("%06d", i) + strings.Repeat("}", fleet.MaxKey-6)
				for range 2 {
					_, err := b.Take(t.Context(), key, 1)
					require.NoError(t, err)
				}
			}
			grown := memoryInUse() - before
			t.Logf("%d bytes for each of %d keys", grown/int64(test.keys), test.keys)
			require.Less(t, grown, int64(test.keys*test.bytes+300_000))
			runtime.KeepAlive(b)
		})
	}
}
