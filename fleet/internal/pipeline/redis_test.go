package pipeline_test

import (
	"context"
	cryptorand "crypto/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

var shared redistest.Package

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var cluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })

// countScript adds to a key and returns the sum.
const countScript = "return {redis.call('INCRBY', KEYS[1], ARGV[1])}"

func addTo(ctx context.Context, w *pipeline.Writer, key string, n int) (int64, error) {
	return addToBy(ctx, w, time.Now().Add(longLimit), key, n)
}

// longLimit is a time limit that a test reaches only if something hangs.
const longLimit = 10 * time.Second

// addToBy is add with a due time.
func addToBy(ctx context.Context, w *pipeline.Writer, due time.Time, key string, n int) (int64, error) {
	answer, _, err := w.Do(ctx, due, "eval", countScript, 1, key, n)
	if err != nil {
		return 0, err
	}
	return answer[0], nil
}

// dialServer returns a client with typical options: it obeys deadlines and retries.
func dialServer(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: 3, PoolSize: 20})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// freshKey returns an unused key with a prefix.
func freshKey(prefix string) string { return prefix + cryptorand.Text() }

func dialCluster(t *testing.T, addrs []string) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
