package recipes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirredis"
)

//readme:redis

// NewCache returns a client whose commands go through the gate.
func NewCache(addr string, gate *weir.Gate) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Limiter: weirredis.New(gate),
		ReadTimeout: 200 * time.Millisecond, DialerRetries: 1,
	})
}

// CachedName returns the name in the cache. If it is missing or Redis is down, load returns it.
func CachedName(ctx context.Context, cache *redis.Client, id string, load func(context.Context, string) (string, error)) (string, error) {
	if name, err := cache.Get(ctx, id).Result(); err == nil {
		return name, nil
	}
	name, err := load(ctx, id)
	if err == nil {
		_ = cache.Set(ctx, id, name, time.Minute).Err() // the name is right, cached or not
	}
	return name, err
}

//readme:end
