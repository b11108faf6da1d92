package fleet

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/stat"
)

// Link is a Redis or Valkey to which limiters are tied: its client, the breaker before it and the time that it may take.
// Limiters of one Redis share a Link, so that all know at once when it is away.
//
// It is a [stat.Source]: the breaker's figures, by the name of the link. All methods are safe for concurrent use.
type Link struct {
	name    string
	client  redis.UniversalClient
	writer  *pipeline.Writer
	timeout time.Duration
	prefix  string
	breaker *breaker.Breaker
	met     atomic.Bool // the server has been found to be of use
	cell    atomic.Bool // it has redis-cell
}

// Connect makes a link to the Redis or Valkey behind the client, stand-alone or a Cluster. The name stands in errors and metrics.
// The client stays the caller's, to close as well, and may serve other ends.
//
// It asks the server who it is. One that cannot be used as it is (see [ErrServer]) is an error. One that is away is not: the
// limiters' policies decide until it is back, and it is asked again then.
//
// Where c makes no sense, its Validate's error is returned. The client must have ContextTimeoutEnabled, for otherwise a
// decision takes as long as it pleases.
func Connect(ctx context.Context, name string, client redis.UniversalClient, c LinkConfig) (*Link, error) {
	if err := errors.Join(c.Validate(), checkClient(client)); err != nil {
		return nil, err
	}
	l := &Link{name: name, client: client, timeout: c.Timeout, prefix: c.Prefix, breaker: breaker.New(name, c.breaker())}
	if l.timeout == 0 {
		l.timeout = defaultTimeout
	}
	if l.prefix == "" {
		l.prefix = defaultPrefix
	}
	l.writer = pipeline.New(client, pipeline.Config{Timeout: l.timeout})
	err := l.within(ctx, l.meet)
	if e, ok := errors.AsType[*StoreError](err); ok {
		if e.final = true; !errors.Is(e, ErrAway) {
			return nil, e
		}
		return l, nil
	}
	return l, err
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

// Name is the name.
func (l *Link) Name() string { return l.name }

// Breaker is the breaker before Redis.
func (l *Link) Breaker() *breaker.Breaker { return l.breaker }

// Observe yields the figures of the breaker: see [stat.Source].
func (l *Link) Observe(yield func(*stat.Series, float64)) { l.breaker.Observe(yield) }

// Histograms yields the distributions of the breaker, where it keeps any.
func (l *Link) Histograms(yield func(*stat.Series, stat.Histogram)) { l.breaker.Histograms(yield) }

// eval runs a script once. All that is asked of Redis about limits goes through here, decide or call, and nothing of it is sent a
// second time after it may have been executed.
func (l *Link) eval(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	return l.answer(ctx, func(ctx context.Context) ([]int64, error) { return l.run(ctx, s, keys, args) })
}

// decide is eval for a script that decides for many callers at once.
func (l *Link) decide(ctx context.Context, d *pipeline.Decision, key string, args ...any) ([]int64, error) {
	return l.answer(ctx, func(ctx context.Context) ([]int64, error) { return l.writer.Decide(ctx, d, key, args...) })
}

// call is eval for a command on a key that answers in numbers. An error that says that the server has no such command is returned
// as it is.
func (l *Link) call(ctx context.Context, key string, args ...any) ([]int64, error) {
	var unknown error
	reply, err := l.answer(ctx, func(ctx context.Context) ([]int64, error) {
		reply, err := l.writer.Do(ctx, key, args...)
		if redis.HasErrorPrefix(err, "unknown command") {
			unknown, err = err, nil
		}
		return reply, err
	})
	if unknown != nil {
		return nil, unknown
	}
	return reply, err
}

// answer gets an answer from a server that has been found to be of use.
func (l *Link) answer(ctx context.Context, ask func(context.Context) ([]int64, error)) (reply []int64, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		if err := l.meet(ctx); err != nil {
			return err
		}
		reply, err = ask(ctx)
		if err == nil && len(reply) == 1 && reply[0] == -1 {
			err = &StoreError{Name: l.name, Fault: Foreign}
		}
		return err
	})
	return reply, err
}

// within calls Redis in the time that it may take, if the breaker lets it. The error is the caller's own context's, or a *StoreError.
func (l *Link) within(ctx context.Context, call func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	permit, err := l.breaker.Allow()
	if err != nil {
		return l.notAsked(err)
	}
	defer permit.Done(breaker.Failure) // where call panics; otherwise it is used up by then
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err = call(bounded)
	if err == nil {
		permit.Done(breaker.Success)
		return nil
	}
	if gone := ctx.Err(); gone != nil {
		permit.Report(ctx, gone)
		return gone
	}
	fault := l.explain(err)
	permit.Done(outcome(fault))
	return fault
}

// notAsked is the error for a refusal of the breaker.
func (l *Link) notAsked(err error) *StoreError {
	e := &StoreError{Name: l.name, Fault: BreakerOpen}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		e.Until = open.Until
	}
	return e
}

// outcome is what an error says about Redis.
func outcome(e *StoreError) breaker.Outcome {
	if errors.Is(e, ErrAway) {
		return breaker.Failure
	}
	return breaker.Success
}

func (l *Link) explain(err error) *StoreError {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e
	}
	return &StoreError{Name: l.name, Fault: faultOf(err)}
}

// run sends a script by its name, and by its text where Redis does not know it, which it then has not executed.
func (l *Link) run(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	reply, err := l.writer.Do(ctx, keys[0], scriptCommand("evalsha", s.sha, keys, args)...)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return l.writer.Do(ctx, keys[0], scriptCommand("eval", s.text, keys, args)...)
	}
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
