package fleet

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/detach"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// ask calls f with the server that has the key, if the server's breaker allows it. f gets the time
// by which it must return. The error is that of ctx or a *StoreError. A caller that may leave calls
// it through package detach: ask itself may go on until the Timeout after ctx has ended.
func (l *Link) ask(ctx context.Context, key string, f func(*node, time.Time) (led bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began := time.Now()
	due := began.Add(l.timeout)
	if sooner, ok := lease.Deadline(ctx); ok && sooner.Before(due) {
		due = sooner
	}
	n, b, err := l.serverFor(ctx, key, began, due)
	if err != nil {
		return err
	}
	return l.callThroughBreaker(ctx, b, n.addr, began, func() (bool, error) {
		if err := l.checkServer(ctx, n, key, due); err != nil {
			return true, err
		}
		return f(n, due)
	})
}

// serverFor returns the server that has the key, and its breaker.
func (l *Link) serverFor(ctx context.Context, key string, began, due time.Time) (*node, *breaker.Breaker, error) {
	if l.shards == nil {
		return l.single, l.breaker, nil
	}
	var client *redis.Client
	var err error
	if l.shards.known.Load() {
		if client, err = l.shards.locate(ctx, key); err != nil {
			return nil, nil, l.storeErrorSince(err, anyAddr, began)
		}
	} else {
		err = l.callThroughBreaker(ctx, l.breaker, anyAddr, began, func() (bool, error) {
			ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), due)
			defer cancel()
			if err = l.watchShards(ctx); err == nil {
				client, err = l.shards.locate(ctx, key)
			}
			return true, err
		})
		if err != nil {
			return nil, nil, err
		}
		l.shards.known.Store(true)
	}
	n := l.shards.node(client, l.newShard)
	return n, l.shards.breakers.Get(n.addr), nil
}

// callThroughBreaker makes a call that began at the given time, if the breaker allows it.
//
// The breaker records what became of the call within the Timeout of the link. A caller that gives
// up counts for nothing, whether by cancellation or by a deadline, because deadlines often come
// from strangers who may choose one that no server can meet. If many callers asked together, only
// the leader records, so that a lost connection is one failure.
func (l *Link) callThroughBreaker(ctx context.Context, b *breaker.Breaker, addr string, began time.Time, call func() (led bool, err error)) error {
	permit, err := b.Allow()
	if err != nil {
		return l.breakerOpenError(err)
	}
	defer permit.Record(ctx, nil, breaker.Failure) // counts only if call panics
	led, err := call()
	outcome, e := breaker.Success, (*StoreError)(nil)
	if err != nil && !errors.Is(err, pipeline.ErrGaveUp) {
		asked := failedAddr(err, addr)
		e = l.storeErrorSince(err, asked, began)
		if outcome = breakerOutcome(e); outcome.Failed() {
			l.lastUnavailable.Store(e)
			if asked != addr { // the server of b redirected to the one that failed
				l.recordFailure(asked)
				outcome = breaker.Success
			}
		}
	}
	if !led {
		outcome = breaker.Ignored
	}
	permit.Record(ctx, nil, outcome)
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return e
}

// failedAddr returns the address of the server an error comes from: the server that was asked, or
// the one to which that server redirected.
func failedAddr(err error, first string) string {
	if e, ok := errors.AsType[*pipeline.ServerError](err); ok && first != anyAddr {
		return e.Addr
	}
	return first
}

// recordFailure records a failure at the breaker of one of several servers.
func (l *Link) recordFailure(addr string) {
	if permit, err := l.shards.breakers.Get(addr).Allow(); err == nil {
		permit.Record(context.Background(), nil, breaker.Failure)
	}
}

// breakerOpenError converts a refusal by a breaker.
func (l *Link) breakerOpenError(err error) *StoreError {
	e := &StoreError{link: l.name, Fault: faultBreakerOpen, cause: err}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		e.until = open.Until
	}
	return e
}

// storeError converts an error of the client library.
func (l *Link) storeError(err error) *StoreError {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e
	}
	return &StoreError{link: l.name, Fault: faultOf(err), cause: err}
}

// storeErrorSince converts the error of a call that began at the given time. If it is a timeout and
// a dial has failed since then, the dial's error is the cause: the client repeats dials in the
// background and reports their errors too late.
func (l *Link) storeErrorSince(err error, addr string, began time.Time) *StoreError {
	e := l.storeError(err)
	if e.Fault == faultTimeout {
		if dial := l.dialErrors.latest(addr, began); dial != nil {
			return l.storeError(dial)
		}
	}
	return e
}

// breakerOutcome returns what an error says about the server. The server fails if it does not
// answer, or answers that it cannot decide anything at present. It succeeds if the answer concerns
// one key, one slot or one script.
func breakerOutcome(e *StoreError) breaker.Outcome {
	switch e.Fault {
	case faultTimeout, faultConnection, faultNoTLS, faultLoading, faultReadOnly, faultMasterDown, faultOutOfMemory, faultBusy:
		return breaker.Failure
	case faultClusterDown, faultDenied:
		if !concernsSomeKeys(e.cause) {
			return breaker.Failure
		}
	case faultBreakerOpen, faultMoved, faultOther, faultForeign, faultTooOld:
	}
	return breaker.Success
}

// concernsSomeKeys reports whether a reply concerns only some keys or commands: those of one slot,
// or those that an access rule excludes.
func concernsSomeKeys(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := trimErrorPrefix(reply.Error())
	for _, prefix := range []string{
		"TRYAGAIN", "CLUSTERDOWN Hash slot", "NOPERM", "ACL failure in script", "The user executing the script can't",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// askFunc requests numbers from a server, and returns by the time due. led reports that the caller
// led the batch of commands in which this one was sent.
type askFunc func(n *node, due time.Time) (reply []int64, led bool, err error)

// eval runs a script once. Everything that limiters ask Redis goes through eval, decide or command.
// Nothing is sent again if it may have been executed.
func (l *Link) eval(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	return l.request(ctx, keys[0], s.askBy(ctx, keys, args))
}

// flush is like eval, but sends the scripts that are flushed at the same time together.
func (l *Link) flush(ctx context.Context, s *script, keys []string, args []any) ([]int64, error) {
	ask := s.askBy(ctx, keys, args)
	return l.request(ctx, keys[0], func(n *node, due time.Time) ([]int64, bool, error) {
		return ask(&node{writer: n.flushes}, due)
	})
}

// askBy returns a function that runs the script once.
func (s *script) askBy(ctx context.Context, keys []string, args []any) askFunc {
	return func(n *node, due time.Time) ([]int64, bool, error) {
		reply, led, err := n.writer.Do(ctx, due, scriptCommand("evalsha", s.sha, keys, args)...)
		if redis.HasErrorPrefix(err, "NOSCRIPT") { // it was not executed
			return n.writer.Do(ctx, due, scriptCommand("eval", s.text, keys, args)...)
		}
		return reply, led, err
	}
}

// decide is like eval, but for a script that decides for many callers at once.
func (l *Link) decide(ctx context.Context, d *pipeline.Decision, key string, args ...any) ([]int64, error) {
	return l.request(ctx, key, func(n *node, due time.Time) ([]int64, bool, error) {
		return n.writer.Decide(ctx, due, d, key, args...)
	})
}

// command is like eval, but runs a command on a key. If the server does not know the command, its
// error is returned as it is.
func (l *Link) command(ctx context.Context, key string, args ...any) ([]int64, error) {
	var unknown error
	reply, err := l.request(ctx, key, func(n *node, due time.Time) ([]int64, bool, error) {
		reply, led, err := n.writer.Do(ctx, due, args...)
		if redis.HasErrorPrefix(err, "unknown command") {
			unknown, err = err, nil
		}
		return reply, led, err
	})
	if err == nil && unknown != nil { // otherwise the caller may have left
		return nil, unknown
	}
	return reply, err
}

// request requests numbers from the server that has the key. A caller whose ctx ends leaves. What
// it is sending may contain commands of other callers, and goes on until it is due.
func (l *Link) request(ctx context.Context, key string, ask askFunc) ([]int64, error) {
	return detach.Do(ctx, func() (reply []int64, err error) {
		err = l.ask(ctx, key, func(n *node, due time.Time) (led bool, err error) {
			reply, led, err = ask(n, due)
			if err == nil && len(reply) == 1 && reply[0] == foreignValue {
				err = &StoreError{link: l.name, Fault: faultForeign}
			}
			return led, err
		})
		return reply, err
	})
}

// foreignValue is the only number in the reply of a script that finds a foreign value.
const foreignValue = -1

func scriptCommand(verb, script string, keys []string, args []any) []any {
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, verb, script, len(keys))
	for _, key := range keys {
		command = append(command, key)
	}
	return append(command, args...)
}
