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

// count adds to a key and returns the sum.
const count = "return {redis.call('INCRBY', KEYS[1], ARGV[1])}"

func add(ctx context.Context, w *pipeline.Writer, key string, n int) (int64, error) {
	return addBy(ctx, w, time.Now().Add(patience), key, n)
}

// patience is a time limit that a test reaches only if something hangs.
const patience = 10 * time.Second

// addBy is add with a due time.
func addBy(ctx context.Context, w *pipeline.Writer, due time.Time, key string, n int) (int64, error) {
	answer, _, err := w.Do(ctx, due, "eval", count, 1, key, n)
	if err != nil {
		return 0, err
	}
	return answer[0], nil
}

// dial returns a client with typical options: it obeys deadlines and retries.
func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: 3, PoolSize: 20})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// fresh returns an unused key with a prefix.
func fresh(prefix string) string { return prefix + cryptorand.Text() }

func dialCluster(t *testing.T, addrs []string) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
