package recipes_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// server is a program that listens on a port of its own. It can be killed and started again.
type server struct {
	addr string
	args func(port string) []string                   // the command line
	up   func(ctx context.Context, addr string) error // returns nil if the program serves
	cmd  *exec.Cmd
	sig  os.Signal // ends it at once: on SIGQUIT PostgreSQL ends all its processes, as in a crash
}

func (s *server) begin(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = listener.Addr().String()
	require.NoError(t, listener.Close())
	s.start(t)
	t.Cleanup(s.kill)
}

// start starts the program. It returns when the program serves.
func (s *server) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	args := s.args(port)
	s.cmd = exec.Command(args[0], args[1:]...) //nolint:noctx // a context would kill it, and a server of PostgreSQL needs a signal to end its processes
	require.NoError(t, s.cmd.Start())
	require.Eventually(t, func() bool {
		return s.up(t.Context(), s.addr) == nil
	}, time.Minute, 10*time.Millisecond, "the server does not start")
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(s.sig)
	_ = s.cmd.Wait()
}

func newRedis(t *testing.T) *server {
	program, dir := testenv.Program(t, "redis-server"), t.TempDir()
	s := &server{sig: os.Kill, args: func(port string) []string {
		return []string{program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir}
	}, up: func(ctx context.Context, addr string) error {
		client := redis.NewClient(&redis.Options{Addr: addr})
		return errors.Join(client.Ping(ctx).Err(), client.Close())
	}}
	s.begin(t)
	return s
}

// maxClients is how many connections a server of newPostgres accepts.
const maxClients = 30

// newPostgres returns a server of PostgreSQL without tables.
func newPostgres(t *testing.T) *server {
	t.Helper()
	initdb, postgres := postgresProgram(t, "initdb"), postgresProgram(t, "postgres")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	var as []string
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		as = []string{testenv.Program(t, "setpriv"), "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"}
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
		out, err := exec.CommandContext(t.Context(), "chown", "nobody", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	run := slices.Concat(as, []string{initdb, "--auth=trust", "--username=test", "--no-sync", "--locale=C", "--encoding=UTF8", data})
	out, err := exec.CommandContext(t.Context(), run[0], run[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))
	options := []string{"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=" + strconv.Itoa(maxClients)}
	s := &server{sig: syscall.SIGQUIT, args: func(port string) []string {
		return slices.Concat(as, []string{postgres, "-D", data, "-p", port}, options)
	}, up: func(ctx context.Context, addr string) error {
		conn, err := pgconn.Connect(ctx, postgresURL(addr))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}}
	s.begin(t)
	return s
}

func postgresURL(addr string) string { return "postgres://test@" + addr + "/postgres?sslmode=disable" }

// postgresProgram returns the path of a program of PostgreSQL. Debian keeps them off the PATH.
func postgresProgram(t *testing.T, name string) string {
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	return testenv.Program(t, append([]string{name}, installed...)...)
}
