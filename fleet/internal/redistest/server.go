package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options configures a server. The server of the zero Options
// keeps nothing on disk.
type Options struct {
	Password string
	// TLS accepts only TLS connections, with a new certificate.
	TLS bool
	// AppendOnly writes to disk before each reply, so that a server that
	// is killed and restarted loses nothing.
	AppendOnly bool
	// Args are further arguments, such as "--maxmemory", "2mb".
	Args []string
}

// Server is one server process. Its methods fail the test that started it if they
// do not succeed.
type Server struct {
	t       TB
	options Options
	dir     string
	port    int
	roots   *tls.Config // what a client trusts; nil without TLS

	mu      sync.Mutex
	process *exec.Cmd
}

// maxServerWait is the longest wait for a server.
const maxServerWait = 20 * time.Second

// Start starts a server that keeps nothing on disk.
func Start(t TB) *Server { t.Helper(); return Options{}.Start(t) }

// Start starts a server, which is killed when the test ends.
func (o Options) Start(t TB) *Server {
	t.Helper()
	s := &Server{t: t, options: o, dir: t.TempDir(), port: freePort(t)}
	if o.TLS {
		s.roots = s.certify()
	}
	t.Cleanup(func() {
		s.Kill()
		if log, err := os.ReadFile(s.filePath("log")); err == nil && t.Failed() {
			t.Logf("log of %s:\n%s", s.Addr(), log)
		}
	})
	s.Restart()
	return s
}

// Addr returns the address of the server. It stays the same after a restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Options returns the options of a client for the server.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr(), Password: s.options.Password, TLSConfig: s.roots.Clone()}
}

// Client returns a new client, which is closed when the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(s.Options())
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Kill kills the server, if it runs, without letting it save anything.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Restart kills the server if it runs, and starts it on the same port and in the same
// folder. It returns when the server answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.launch()
	s.await("it answers", func(ctx context.Context, c *redis.Client) bool { return c.Ping(ctx).Err() == nil })
}

// launch starts the process without waiting for an answer.
func (s *Server) launch() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = exec.Command(binary(s.t), s.args()...) //nolint:noctx // it outlives the test's context, to be stopped in its cleanup
	s.process.SysProcAttr = killWithParent()
	if err := s.process.Start(); err != nil {
		s.t.Fatalf("%s does not start: %v", s.process.Path, err)
	}
}

func (s *Server) args() []string {
	port, secure := strconv.Itoa(s.port), "0"
	if s.options.TLS {
		port, secure = "0", port
	}
	args := []string{
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--logfile", s.filePath("log"), "--save", "",
		"--appendonly", "no", "--appendfsync", "always", "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0",
	}
	if s.options.AppendOnly {
		args = append(args, "--appendonly", "yes")
	}
	if s.options.Password != "" {
		args = append(args, "--requirepass", s.options.Password, "--masterauth", s.options.Password)
	}
	if s.options.TLS {
		args = append(args, "--tls-port", secure, "--tls-cert-file", s.filePath("cert"), "--tls-key-file", s.filePath("key"),
			"--tls-ca-cert-file", s.filePath("cert"), "--tls-auth-clients", "no")
	}
	return append(args, s.options.Args...)
}

// Do runs a command and returns its reply as text.
func (s *Server) Do(command ...any) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxServerWait)
	defer cancel()
	c := redis.NewClient(s.Options())
	defer func() { _ = c.Close() }()
	answer, err := c.Do(ctx, command...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", command, err)
	}
	return fmt.Sprint(answer)
}

// Calls returns how often the server has run each command since it started, by its
// lower-case name, such as evalsha.
func (s *Server) Calls() map[string]int {
	s.t.Helper()
	calls := map[string]int{}
	for line := range strings.Lines(s.Do("INFO", "commandstats")) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		count, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.Atoi(count); err == nil {
			calls[name] = n
		}
	}
	return calls
}

// StartReplica starts a replica of this server, and returns when it has all that
// has been written.
func (s *Server) StartReplica() *Server {
	s.t.Helper()
	o := s.options
	o.Args = append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(s.port)}, o.Args...)
	if o.TLS {
		o.Args = append(o.Args, "--tls-replication", "yes")
	}
	r := o.Start(s.t)
	r.await("it follows", func(ctx context.Context, c *redis.Client) bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	s.AwaitReplica() // a master may hold its stream back for a second after that
	return r
}

// AwaitReplica returns when a replica has all that has been written to this server.
func (s *Server) AwaitReplica() {
	s.t.Helper()
	s.await("the replica has all", func(ctx context.Context, c *redis.Client) bool {
		conn := c.Conn() // WAIT is about the writes of its own connection
		defer func() { _ = conn.Close() }()
		wrote := conn.Set(ctx, "redistest", "", time.Millisecond).Err() == nil
		return wrote && conn.Wait(ctx, 1, time.Second).Val() == 1
	})
}

// Promote turns a replica into a master.
func (s *Server) Promote() { s.t.Helper(); s.Do("REPLICAOF", "NO", "ONE") }

func (s *Server) filePath(name string) string { return filepath.Join(s.dir, name) }

// await returns when the condition holds.
func (s *Server) await(what string, holds func(context.Context, *redis.Client) bool) {
	s.t.Helper()
	o := s.Options()
	o.MaxRetries, o.DialTimeout = -1, time.Second
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), maxServerWait)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx, c) {
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(s.filePath("log"))
			s.t.Fatalf("%s: waited %v until %s; the log:\n%s", s.Addr(), maxServerWait, what, log)
		case <-tick.C:
		}
	}
}

// freePort returns a port that is free, as is its cluster bus port. It is
// below the ports of outgoing connections, so that it is still
// free after a restart.
func freePort(t TB) int {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(10_000)
		if canListen(port) && canListen(port+10_000) {
			return port
		}
	}
	t.Fatalf("no free port")
	return 0
}

func canListen(port int) bool {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
