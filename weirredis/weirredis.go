// Package weirredis puts a gate in front of a client of Redis or Valkey. A [Limiter] has the
// methods of go-redis' Limiter interface, so this package depends on no client:
//
//	var gate = weir.New("cache", weir.Config{})
//
//	client := redis.NewClient(&redis.Options{Addr: addr, Limiter: weirredis.New(gate)})
//
// go-redis then asks the gate before each attempt of a command, a pipeline or a transaction, and
// reports its result:
//
//	command ──► Allow ──► connection ──► server
//	        ◄─────┤ refused                 │
//	              │                         ▼
//	              ◄──────────────────── ReportResult: an answer, or a failure
//
// # Guarantees
//
//   - A refused command returns the error of the gate, which matches weir.ErrRefused, and is not
//     retried.
//   - A reply with an error is an answer, as it shows that the server works, unless it says that
//     the server cannot serve: see [Classify], which can also be the Classify of any breaker around
//     Redis.
//
// # What go-redis does not tell
//
//   - Allow has no context. With weir.Config.MaxWait, a command waits for the gate for up to
//     MaxWait, also if its caller has left. Do not set both MaxWait and MaxConcurrent: when the
//     bound is full, each command of a handshake (see below) waits that long for a slot.
//   - ReportResult does not say which command ended. A Limiter takes it to be the one that was
//     allowed first. So the sums of outcomes and of durations are right, but a single command may
//     get the duration of another one. Do not set SlowCall of the breaker.
//   - Before a command on a new connection, go-redis sends a few commands for the handshake, and
//     asks and reports for each of them while the command waits. In a closed breaker they count as
//     calls, and each takes a token. A half-open or recovering breaker and a bound on calls in
//     flight would refuse the handshakes of the commands that they allow. Therefore, while allowed
//     commands are in flight, as many refused ones pass too, of this or another caller. The gate
//     does not count them, and drops one result for each. So at most twice as many commands are in
//     flight as the gate allows.
//   - A pipeline is one call to the gate. It counts as a success if its replies were read, whatever
//     they say.
//
// Where that matters, call the gate around a command instead:
//
//	name, err := weir.Do(ctx, gate, func(ctx context.Context) (string, error) {
//		return client.Get(ctx, "name").Result()
//	})
//
// with weirredis.Classify as the Classify of the gate's breaker.
package weirredis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// Limiter is a gate in the form of go-redis' Limiter. Several clients can share one. All methods
// are safe for concurrent use. The zero value does not work: use New.
type Limiter struct {
	gate *weir.Gate

	mu      sync.Mutex
	permits []*weir.Permit // of the commands in flight, in the order of Allow
	extra   int            // commands in flight that the gate has refused; at most len(permits)
}

// New returns a Limiter that asks the gate. For a breaker alone, use the gate
// weir.Join("cache", weir.Parts{Breaker: b}). New panics if g is nil.
func New(g *weir.Gate) *Limiter {
	if g == nil {
		panic("weirredis: the gate is nil")
	}
	return &Limiter{gate: g}
}

// Allow returns nil if the gate allows a command, or the error of [weir.Gate.Allow]. See the
// package comment for the commands that it lets pass nevertheless.
func (l *Limiter) Allow() error {
	var err error
	p := new(weir.Permit)
	*p, err = l.gate.Allow(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if l.extra >= len(l.permits) || !mayBeHandshake(err) {
			return err
		}
		l.extra++
		return nil
	}
	l.permits = append(l.permits, p)
	return nil
}

// mayBeHandshake reports whether the gate may have refused the handshake of a command that it has
// allowed.
func mayBeHandshake(err error) bool {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return open.State == breaker.HalfOpen || open.State == breaker.Recovering
	}
	return errors.Is(err, inflight.ErrFull)
}

// ReportResult records the result of a command that Allow has allowed, with the outcome that
// [Classify] returns. A report without such a command is ignored.
func (l *Limiter) ReportResult(result error) {
	if p := l.permitOfReport(); p != nil {
		p.Record(context.Background(), result, Classify(result))
	}
}

// permitOfReport removes the permit that was acquired first, and returns it. It returns nil if
// there is none, or if a command without a permit is in flight: a handshake ends before its
// command.
func (l *Limiter) permitOfReport() *weir.Permit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.extra > 0 {
		l.extra--
		return nil
	}
	if len(l.permits) == 0 {
		return nil
	}
	p := l.permits[0]
	l.permits = slices.Delete(l.permits, 0, 1)
	return p
}

// Classify returns the outcome of a command that returned the given error or nil. It knows the
// errors of go-redis and, by the first word of their text, those of servers.
//
//   - A reply is a success, also one with an error, such as redis.Nil, WRONGTYPE, NOAUTH or MOVED.
//   - A reply that says that the server cannot serve is a failure: BUSY, CLUSTERDOWN, LOADING,
//     MASTERDOWN, MISCONF, NOREPLICAS, OOM, READONLY or TRYAGAIN. If the server has too many
//     clients, the outcome is Overloaded.
//   - If the pool of the client has no connection left, if the client is closed, and if the caller
//     has cancelled the command, the outcome is Ignored: the server has not seen the command, or
//     was not waited for.
//   - Other errors are those of [breaker.DefaultClassify]: connections that fail, and time that has
//     run out, are failures.
func Classify(err error) breaker.Outcome {
	if err == nil {
		return breaker.Success
	}
	if reply, ok := errors.AsType[redisError](err); ok {
		return classifyReply(reply.Error())
	}
	if errors.Is(err, context.Canceled) {
		return breaker.Ignored
	}
	for _, text := range ofClient {
		if strings.Contains(err.Error(), text) {
			return breaker.Ignored
		}
	}
	return breaker.DefaultClassify(err)
}

// redisError is the Error interface of go-redis, which all replies with an error implement.
type redisError interface {
	error
	RedisError()
}

// ofClient are errors of go-redis that say nothing about the server.
var ofClient = [...]string{"redis: connection pool timeout", "redis: connection pool exhausted", "redis: client is closed"}

func classifyReply(text string) breaker.Outcome {
	text = strings.TrimPrefix(text, "ERR ")
	switch code, _, _ := strings.Cut(text, " "); code {
	case "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN":
		return breaker.Failure
	}
	if strings.HasPrefix(text, "max number of clients") {
		return breaker.Overloaded
	}
	return breaker.Success
}
