package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/detach"
	"github.com/weir-go/weir/stat"
)

// Link connects limiters to a Redis or Valkey. It holds the client, the Timeout of a decision and
// the breakers that protect the servers. Limiters of one Redis should share a Link, so that all of
// them know at once when it is unavailable.
//
// A stand-alone Redis has one breaker. Each master of a Cluster and each shard of a Ring has its
// own, so that an unavailable server affects only the limits of its own keys.
//
// A Link is a [stat.Source] with the metrics of its breakers, by the name of the link, and by the
// address if there are several servers. All methods are safe for concurrent use. The zero value
// does not work: use [Connect].
type Link struct {
	name            string
	client          redis.UniversalClient
	timeout         time.Duration
	prefix          string
	breaker         *breaker.Breaker
	single          *node   // the only server; nil if there are shards
	shards          *shards // nil if there is one server
	dialErrors      *dialErrors
	lastUnavailable atomic.Pointer[StoreError]
	serverChecked   atomic.Bool   // checkServer has succeeded
	hasCell         atomic.Bool   // the server has redis-cell
	flushPhase      time.Duration // makes the links of a fleet flush at different times
	epoch           time.Time
}

// Connect returns a link to the Redis or Valkey of a client, stand-alone or a Cluster. The name is
// part of errors and metrics. The client remains the caller's to close, and may be used for other
// purposes. The client must have ContextTimeoutEnabled, because a decision could otherwise exceed
// the Timeout.
//
// Connect adds a hook to the client, or to the clients of its shards. The hook observes dials, and
// bounds the replies on new connections: one that declares more than 262,144 values or a text of
// more than 16 MB is an error, before memory is allocated. That holds for the commands of this
// package, and for those that the client sends by itself. It does not hold for your other commands,
// for Sentinels, and for a shard of a Ring that is down, until this package uses it. go-redis
// allows no hook to be added while the client is in use. So call Connect before other goroutines
// use it, and for a Ring before its first heartbeat, by default within 500 ms of NewRing.
//
// Connect asks the server about itself, which takes up to the Timeout. If there is no answer, it
// takes up to as long again to find out whether TLS is the reason. Connect returns an error if the
// server cannot be used as it is: see [ErrServer]. It returns no error if the server is
// unavailable: the limiters' policies decide until it is back, and it is asked about itself then.
// [Link.Err] says why it is unavailable.
//
// Connect returns the error of c.Validate if c is invalid.
func Connect(ctx context.Context, name string, client redis.UniversalClient, c LinkConfig) (*Link, error) {
	if err := errors.Join(c.Validate(), validateClient(client)); err != nil {
		return nil, err
	}
	l := newLink(name, client, c)
	_, err := detach.Do(ctx, func() (struct{}, error) {
		return struct{}{}, l.ask(ctx, l.prefix+"{}", func(*node, time.Time) (bool, error) { return true, nil })
	})
	e, ok := errors.AsType[*StoreError](err)
	if !ok {
		return l, err
	}
	if e.Fault == faultTimeout && answersWithoutTLS(ctx, client, l.timeout) {
		e = &StoreError{link: name, Fault: faultNoTLS, cause: errNoTLS}
	}
	if e.Fault == faultConnection && wantsTLS(ctx, client, l.timeout) {
		e = &StoreError{link: name, Fault: faultNoTLS, cause: errWantsTLS}
	}
	if e.final = true; !errors.Is(e, ErrUnavailable) {
		return nil, e
	}
	return l, ctx.Err()
}

func newLink(name string, client redis.UniversalClient, c LinkConfig) *Link {
	l := &Link{name: name, client: client, timeout: c.Timeout, prefix: c.Prefix, breaker: breaker.New(name, c.breaker()), epoch: time.Now(), flushPhase: rand.N(time.Hour)}
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

// validateClient validates the options of clients of known types.
func validateClient(client redis.UniversalClient) error {
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

// Name returns the name of the link.
func (l *Link) Name() string { return l.name }

// Breakers yields the breakers of the servers that have been asked, by address. The breaker with
// the address "" is that of a stand-alone Redis. In a Cluster or a Ring it protects requests to no
// server in particular, namely those that ask which server has which keys.
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

// Err returns the latest error that a server was unavailable, or nil if there was none since
// Connect. It wraps the error of the client library. It remains when the server is back.
func (l *Link) Err() error {
	if e := l.lastUnavailable.Load(); e != nil {
		return e
	}
	return nil
}

// Observe yields the metrics of the breakers: see [stat.Source].
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

// Histograms yields the histograms of the breakers, if they keep any.
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

// LinkConfig configures a [Link].
type LinkConfig struct {
	// Timeout is the longest that Redis may take for one decision, from 1ms to 1m, including the
	// time to connect and to wait for a connection of the pool. Default 100ms.
	Timeout time.Duration
	// Prefix is the beginning of all Redis keys. It must not contain braces. Default "weir:".
	Prefix string
	// Breaker configures the breaker of a stand-alone Redis, and of each server of a Cluster or a
	// Ring. A call fails if the server does not answer within Timeout, or answers that it cannot
	// decide anything at present. It does not fail if the caller gives up sooner, or if the answer
	// concerns a single key or slot. Change.Key is the address of the server. Classify is not used.
	// Default that of package breaker, with these differences. It also opens after 5
	// consecutive failures. It then lets one decision try Redis after 1s to 1.25s, at random, and
	// closes at once if Redis answers, because Recovery is Off.
	Breaker breaker.Config
}

const (
	defaultTimeout = 100 * time.Millisecond
	maxTimeout     = time.Minute
	defaultPrefix  = "weir:"
)

// Validate returns nil if c is valid, and otherwise an error that names every invalid field.
func (c LinkConfig) Validate() error {
	faults := []error{c.breaker().Validate()}
	if c.Timeout != 0 && (c.Timeout < time.Millisecond || c.Timeout > maxTimeout) {
		faults = append(faults, fmt.Errorf("fleet: Timeout is %s, must lie between 1ms and %s (or be 0 for the default)", c.Timeout, maxTimeout))
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		faults = append(faults, fmt.Errorf("fleet: Prefix is %q, must have no braces", c.Prefix))
	}
	return errors.Join(faults...)
}

// breaker returns the config of the breakers with the defaults of this package.
func (c LinkConfig) breaker() breaker.Config {
	b := c.Breaker
	if b.ConsecutiveFailures == 0 {
		b.ConsecutiveFailures = 5
	}
	if b.Cooldown == 0 {
		b.Cooldown = 1250 * time.Millisecond
		if b.CooldownJitter == 0 {
			b.CooldownJitter = 0.2
		}
	}
	if b.Probes == 0 {
		b.Probes = 1
	}
	if b.Recovery == 0 {
		b.Recovery = breaker.Off
	}
	return b
}

// maxKey is the length in bytes up to which a key is used unchanged in Redis and in the tables of
// this process. A longer key is replaced by its SHA-256, so no key takes more than 3·maxKey bytes.
const maxKey = 256

// keyTag returns the text that stands for a key between the braces of a Redis key. A Cluster puts
// all Redis keys with the same tag into one slot. A tag is never empty and contains no closing
// brace, because a Cluster ignores such braces. Different keys have different tags.
func keyTag(key string) string {
	switch {
	case len(key) > maxKey:
		sum := sha256.Sum256([]byte(key))
		return "%sha256:" + hex.EncodeToString(sum[:])
	case key == "":
		return "%"
	case strings.ContainsAny(key, "%}"):
		return tagEscape.Replace(key)
	}
	return key
}

var tagEscape = strings.NewReplacer("%", "%25", "}", "%7D")
