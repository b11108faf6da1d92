package fleet

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/stat"
)

// Link is a Redis or Valkey to which limiters are tied: its client, the breakers before it and the time that it may take.
// Limiters of one Redis share a Link, so that all know at once when it is unavailable.
//
// A stand-alone Redis has one breaker. Each master of a Cluster, and each shard of a Ring, has its own, so that one that is unavailable costs
// the limits of its own keys alone.
//
// It is a [stat.Source]: the breakers' figures, by the name of the link, and by the address where there are several servers.
// All methods are safe for concurrent use.
type Link struct {
	name            string
	client          redis.UniversalClient
	timeout         time.Duration
	prefix          string
	breaker         *breaker.Breaker
	single          *node // the only server; nil where there are shards
	shards          *shards
	dialErrors      *dialErrors
	lastUnavailable atomic.Pointer[StoreError] // the latest
	serverChecked   atomic.Bool                // the server has been found to be of use
	hasCell         atomic.Bool                // it has redis-cell
}

// Connect makes a link to the Redis or Valkey behind the client, stand-alone or a Cluster. The name stands in errors and metrics.
// The client stays the caller's, to close as well, and may serve other ends. It is given a hook that watches its dials.
//
// Connect asks the server who it is. One that cannot be used as it is (see [ErrServer]) is an error: a certificate that is not accepted or a
// client without TLS settings that fit, credentials that are refused, a version before 6, and a server in cluster mode where the
// client is not one for Clusters. A server that is unavailable is not an error: the limiters' policies decide until it is back, and it is asked again
// then. [Link.Err] tells why it is unavailable.
//
// Where c makes no sense, its Validate's error is returned. The client must have ContextTimeoutEnabled, for otherwise a
// decision takes as long as it pleases.
func Connect(ctx context.Context, name string, client redis.UniversalClient, c LinkConfig) (*Link, error) {
	if err := errors.Join(c.Validate(), checkClient(client)); err != nil {
		return nil, err
	}
	l := newLink(name, client, c)
	err := l.ask(ctx, l.prefix+"{}", func(*node, time.Time) (bool, error) { return true, nil })
	e, ok := errors.AsType[*StoreError](err)
	if !ok {
		return l, err
	}
	if e.Fault == faultTimeout && answersWithoutTLS(ctx, client, l.timeout) {
		e = &StoreError{link: name, Fault: faultNoTLS, cause: errNoTLS}
	}
	if e.final = true; !errors.Is(e, ErrUnavailable) {
		return nil, e
	}
	return l, nil
}

func newLink(name string, client redis.UniversalClient, c LinkConfig) *Link {
	l := &Link{name: name, client: client, timeout: c.Timeout, prefix: c.Prefix, breaker: breaker.New(name, c.breaker())}
	if l.timeout == 0 {
		l.timeout = defaultTimeout
	}
	if l.prefix == "" {
		l.prefix = defaultPrefix
	}
	if locate := locator(client); locate != nil {
		l.shards = newShards(locate, breaker.NewGroup[string](name, breaker.GroupConfig{Breaker: c.breaker()}))
	} else {
		l.single = l.newNode(client, "")
	}
	l.dialErrors = watchDialErrors(client)
	return l
}

// checkClient looks at what options a client has, where that can be seen.
func checkClient(client redis.UniversalClient) error {
	bounded := true
	switch c := client.(type) {
	case nil:
		return errors.New("fleet: the client is nil")
	case *redis.Client:
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		bounded = c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		bounded = c.Options().ContextTimeoutEnabled
	}
	if !bounded {
		return errors.New("fleet: the client's ContextTimeoutEnabled is false, must be true")
	}
	return nil
}

// Breakers yields the breakers before the servers by their addresses: those that have been asked. The one without an address is that of a
// stand-alone Redis; in a Cluster or a Ring it stands before what is asked of no server in particular: which of them has which keys.
func (l *Link) Breakers() iter.Seq2[string, *breaker.Breaker] {
	return func(yield func(string, *breaker.Breaker) bool) {
		if !yield("", l.breaker) || l.shards == nil {
			return
		}
		for addr, b := range l.shards.breakers.All() {
			if !yield(addr, b) {
				return
			}
		}
	}
}

// Err returns the latest error that says that a server was unavailable, and nil where none has been since the link was made. It wraps
// what the client library said. It stays when the server is back.
func (l *Link) Err() error {
	if e := l.lastUnavailable.Load(); e != nil {
		return e
	}
	return nil
}

// Observe yields the figures of the breakers: see [stat.Source].
func (l *Link) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range l.breaker.Observe {
		if !yield(s, v) {
			return
		}
	}
	if l.shards != nil {
		l.shards.breakers.Observe(yield)
	}
}

// Histograms yields the distributions of the breakers, where they keep any.
func (l *Link) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for s, h := range l.breaker.Histograms {
		if !yield(s, h) {
			return
		}
	}
	if l.shards != nil {
		l.shards.breakers.Histograms(yield)
	}
}

// asking asks a server for numbers by the time at which they are due, and reports whether the caller led those who asked together.
type askFunc func(w *pipeline.Writer, due time.Time) (reply []int64, led bool, err error)

// eval runs a script once. All that is asked of Redis about limits goes through here, decide or call, and nothing of it is sent a
// second time after it may have been executed.
func (l *Link) eval(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	return l.numbers(ctx, keys[0], func(w *pipeline.Writer, due time.Time) ([]int64, bool, error) {
		reply, led, err := w.Do(ctx, due, scriptCommand("evalsha", s.sha, keys, args)...)
		if redis.HasErrorPrefix(err, "NOSCRIPT") { // which says that it was not executed
			return w.Do(ctx, due, scriptCommand("eval", s.text, keys, args)...)
		}
		return reply, led, err
	})
}

// decide is eval for a script that decides for many callers at once.
func (l *Link) decide(ctx context.Context, d *pipeline.Decision, key string, args ...any) ([]int64, error) {
	return l.numbers(ctx, key, func(w *pipeline.Writer, due time.Time) ([]int64, bool, error) {
		return w.Decide(ctx, due, d, key, args...)
	})
}

// call is eval for a command on a key that answers in numbers. An error that says that the server has no such command is returned
// as it is.
func (l *Link) command(ctx context.Context, key string, args ...any) ([]int64, error) {
	var unknown error
	reply, err := l.numbers(ctx, key, func(w *pipeline.Writer, due time.Time) ([]int64, bool, error) {
		reply, led, err := w.Do(ctx, due, args...)
		if redis.HasErrorPrefix(err, "unknown command") {
			unknown, err = err, nil
		}
		return reply, led, err
	})
	if unknown != nil {
		return nil, unknown
	}
	return reply, err
}

// answer gets an answer from the server that has the key.
func (l *Link) numbers(ctx context.Context, key string, ask askFunc) (reply []int64, err error) {
	err = l.ask(ctx, key, func(n *node, due time.Time) (led bool, err error) {
		reply, led, err = ask(n.writer, due)
		if err == nil && len(reply) == 1 && reply[0] == -1 {
			err = &StoreError{link: l.name, Fault: faultForeign}
		}
		return led, err
	})
	return reply, err
}

func scriptCommand(verb, script string, keys []string, args []any) []any {
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, verb, script, len(keys))
	for _, key := range keys {
		command = append(command, key)
	}
	return append(command, args...)
}
