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
		DialTimeout: 200 * time.Millisecond, ReadTimeout: 200 * time.Millisecond,
		DialerRetries: 1, MaxRetries: -1,
	})
}

// Cached returns what is in the cache. If it is missing or Redis is down, load returns it.
func Cached(ctx context.Context, cache *redis.Client, key string, load func(context.Context) (string, error)) (string, error) {
	if value, err := cache.Get(ctx, key).Result(); err == nil {
		return value, nil
	}
	value, err := load(ctx)
	if err == nil {
		_ = cache.Set(ctx, key, value, time.Minute).Err() // the value is right, cached or not
	}
	return value, err
}

//readme:end
