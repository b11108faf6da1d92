package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a server on a unix socket in a new directory. The server ends with the context.
// stop ends it and waits.
func startRedis(ctx context.Context) (address string, stop func(), err error) {
	program, err := redisProgram()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	address = filepath.Join(dir, "redis.sock")
	server := exec.CommandContext(ctx, program, "--port", "0", "--unixsocket", address, "--dir", dir, "--save", "", "--appendonly", "no")
	stop = func() {
		cancel()
		_ = server.Wait() // it was killed
		_ = os.RemoveAll(dir)
	}
	if err = server.Start(); err == nil {
		err = awaitAnswer(ctx, address)
	}
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%s: %w", program, err)
	}
	return address, stop, nil
}

func redisProgram() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is installed: install Debian's package redis-server, or give the address of a server with -redis")
}

// newClient returns a client for the server at the address. An absolute path is a unix socket.
func newClient(address string) *redis.Client {
	o := &redis.Options{Addr: address, ContextTimeoutEnabled: true}
	if filepath.IsAbs(address) {
		o.Network = "unix"
	}
	return redis.NewClient(o)
}

// awaitAnswer waits until the server answers.
func awaitAnswer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := newClient(address)
	defer c.Close()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
