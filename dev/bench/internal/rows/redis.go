package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet"
)

// Redis is a running redis-server on a unix socket, with a client.
type Redis struct {
	server  *exec.Cmd
	signals chan os.Signal
	dir     string
	client  *redis.Client
	link    *fleet.Link
	names   atomic.Int64
}

// StartRedis starts a redis-server. Call Stop to end it. The server also ends if the program is
// interrupted or terminated.
func StartRedis(ctx context.Context) (*Redis, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("the rows about Redis need redis-server (make deps installs it): %w", err)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "socket")
	server := exec.CommandContext(context.WithoutCancel(ctx), program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	if err := server.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r := &Redis{
		server: server, dir: dir, signals: make(chan os.Signal, 1),
		client: redis.NewClient(&redis.Options{Network: "unix", Addr: socket, ContextTimeoutEnabled: true, PoolSize: 64}),
	}
	signal.Notify(r.signals, os.Interrupt, syscall.SIGTERM)
	go r.killOnSignal()
	if err := r.connect(ctx); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// connect waits until the server answers.
func (r *Redis) connect(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for err = r.client.Ping(ctx).Err(); err != nil && ctx.Err() == nil; err = r.client.Ping(ctx).Err() {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	r.link, err = fleet.Connect(ctx, "bench", r.client, fleet.LinkConfig{Timeout: 5 * time.Second})
	return err
}

// killOnSignal kills the server and ends the program at a signal.
func (r *Redis) killOnSignal() {
	if _, asked := <-r.signals; asked {
		_ = r.server.Process.Kill()
		_ = os.RemoveAll(r.dir)
		os.Exit(1)
	}
}

// newName returns a new name for a limiter, so that no two limiters share keys.
func (r *Redis) newName() string { return fmt.Sprint("bench ", r.names.Add(1)) }

// Stop ends the server.
func (r *Redis) Stop() error {
	signal.Stop(r.signals)
	close(r.signals)
	err := errors.Join(r.client.Close(), r.server.Process.Kill())
	_ = r.server.Wait() // it was killed
	return errors.Join(err, os.RemoveAll(r.dir))
}
