package fleet_test

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

var shared redistest.Package

// TestMain runs more tests at once than there are processors: parallel tests mostly wait for
// servers of their own.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(shared.Run(m))
}

// sharedServer is shared by all tests that leave it unchanged. Each test uses its own names.
var sharedServer = sync.OnceValue(func() *redistest.Server { return redistest.Start(&shared) })

// sharedCluster is a Cluster shared in the same way.
var sharedCluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })

// connect returns a link to the shared server.
func connect(t testing.TB) *fleet.Link {
	t.Helper()
	return connectTo(t, newClient(t, sharedServer()), fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)})
}

// keyPrefix returns a prefix for the keys of this run of a test.
func keyPrefix(t testing.TB) string {
	p, _ := prefixes.LoadOrStore(t, newKey()+":")
	return p.(string)
}

var prefixes sync.Map

// newClient returns a client that obeys the deadlines of contexts.
func newClient(t testing.TB, s *redistest.Server) *redis.Client {
	t.Helper()
	o := s.Options()
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// timeoutSlack is how much longer than its Timeout a call may take, by testenv.Running. It is less
// than the read timeout of a client, 3 s, so that a call that waits for the client's own timeout is
// found.
const timeoutSlack = 2 * time.Second

// longTimeout is a Timeout that a test reaches only if something hangs.
const longTimeout = 30_000_000_000

func connectTo(t testing.TB, client redis.UniversalClient, c fleet.LinkConfig) *fleet.Link {
	t.Helper()
	l, err := fleet.Connect(t.Context(), t.Name(), client, c)
	require.NoError(t, err)
	return l
}
