package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a redis-server on a unix socket, and returns a client of it.
func startRedis(ctx context.Context) (client *redis.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "rivals")
	if err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(dir, "socket")
	server := exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	if err := server.Start(); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	client = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, ContextTimeoutEnabled: true, PoolSize: 64})
	stop = func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 100 {
		if err = client.Ping(ctx).Err(); err == nil {
			return client, stop, nil
		}
		<-time.After(20 * time.Millisecond)
	}
	stop()
	return nil, nil, err
}
