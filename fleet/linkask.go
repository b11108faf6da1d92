package fleet

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// within asks the server that has the key, in the time that it may take, if its breaker lets it. The error is the caller's own
// context's, or a *StoreError.
func (l *Link) ask(ctx context.Context, key string, ask func(*node, time.Time) (led bool, err error)) error {
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
		return ask(n, due)
	})
}

// server is the server that has the key, and the breaker before it.
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
			client, err = l.shards.locate(ctx, key)
			return true, err
		})
		if err != nil {
			return nil, nil, err
		}
		l.shards.known.Store(true)
	}
	n := l.shards.node(client, l.newNode)
	return n, l.shards.breakers.Get(n.addr), nil
}

// guard makes a call that began at a time to a server, if the breaker before it lets it.
//
// What the breaker is told is what became of the call within the link's own Timeout. That the caller gave up says nothing, neither by a
// cancellation nor by a deadline: who calls often sets the deadline, and a stranger may choose one that no server can keep. Where many
// callers asked together the one that led tells for all: a connection that is lost is one failure, however many waited for it.
func (l *Link) callThroughBreaker(ctx context.Context, b *breaker.Breaker, addr string, began time.Time, call func() (led bool, err error)) error {
	permit, err := b.Allow()
	if err != nil {
		return l.breakerOpenError(err)
	}
	defer permit.Record(breaker.Failure) // where call panics; otherwise it is used up by then
	led, err := call()
	outcome, e := breaker.Success, (*StoreError)(nil)
	if err != nil && !errors.Is(err, pipeline.ErrGaveUp) {
		asked := failedAddr(err, addr)
		e = l.storeErrorSince(err, asked, began)
		if outcome = breakerOutcome(e); outcome == breaker.Failure {
			l.lastUnavailable.Store(e)
			if asked != addr { // to which the server redirected that stands behind b
				l.recordFailure(asked)
				outcome = breaker.Success
			}
		}
	}
	if !led {
		outcome = breaker.Ignored
	}
	permit.Record(outcome)
	if err == nil {
		return nil
	}
	if gone := ctx.Err(); gone != nil {
		return gone
	}
	return e
}

// askedLast is the address of the server that an error comes from: that which was asked first, or that to which it redirected.
func failedAddr(err error, first string) string {
	if e, ok := errors.AsType[*pipeline.ServerError](err); ok && first != anyAddr {
		return e.Addr
	}
	return first
}

// blame tells the breaker before one of several servers of a failure.
func (l *Link) recordFailure(addr string) {
	if permit, err := l.shards.breakers.Get(addr).Allow(); err == nil {
		permit.Record(breaker.Failure)
	}
}

// notAsked is the error for a refusal of the breaker.
func (l *Link) breakerOpenError(err error) *StoreError {
	e := &StoreError{link: l.name, Fault: faultBreakerOpen, cause: err}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		e.until = open.Until
	}
	return e
}

// explain is what an error means.
func (l *Link) storeError(err error) *StoreError {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e
	}
	return &StoreError{link: l.name, Fault: faultOf(err), cause: err}
}

// diagnose is explain for the error of a call that began at a time. Where there was no answer in time because the server could not be
// dialed, of which the client tells only later, the error means what the dial says.
func (l *Link) storeErrorSince(err error, addr string, began time.Time) *StoreError {
	e := l.storeError(err)
	if e.Fault == faultTimeout {
		if dial := l.dialErrors.latest(addr, began); dial != nil {
			return l.storeError(dial)
		}
	}
	return e
}

// verdict is what a fault says about the server to the breaker before it. A server that answers is there, whatever it answers about one
// key, one slot or one script; it fails if it does not answer, or says that it can decide nothing at present.
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

// aboutSome reports whether a reply concerns some keys or commands only: those of one slot, or those that an access rule leaves out.
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
