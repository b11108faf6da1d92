package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnsent is matched by the error of a command that was not sent, because its time was up before its turn came.
// It matches context.DeadlineExceeded too.
var ErrUnsent = fmt.Errorf("pipeline: not sent in time: %w", context.DeadlineExceeded)

// ErrLeft is matched by the error of a caller that gave up before there was an answer. It matches the error of the
// caller's context too, and says nothing about the server.
var ErrLeft = errors.New("pipeline: the caller has given up")

// errLate is the error of a caller in the batch of another, under way when its time is up.
var errLate = fmt.Errorf("pipeline: no answer in time: %w", context.DeadlineExceeded)

// errAborted is the error of those whose batch was given up by a panic or the end of a goroutine.
var errAborted = errors.New("pipeline: the batch was aborted")

// leftError is an ErrLeft with the error of the caller's context.
type leftError struct{ error }

func (leftError) Is(target error) bool { return target == ErrLeft }
func (e leftError) Unwrap() error      { return e.error }

// ServerError is the error of a command of which it is known what server it was sent to: in a Cluster it may be another than that which
// had the key when the client last asked.
type ServerError struct {
	Addr string
	Err  error
}

func (e *ServerError) Error() string { return e.Err.Error() }
func (e *ServerError) Unwrap() error { return e.Err }

// Config says how a [Writer] sends.
type Config struct {
	Timeout time.Duration // the time that a caller's due is ahead when it comes. Must be above 0.
	Lanes   int           // how many writes are under way at once. Default 4.
	Batch   int           // the most commands in one write. Default 128.
}

const (
	defaultLanes = 4
	defaultBatch = 128
)

// The pauses before a command is tried again that a Cluster could not execute while it moves a slot.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// Writer sends commands to one server, those of concurrent callers together. It is made with New and safe for
// concurrent use. There is nothing to close: it has neither connections nor goroutines of its own.
type Writer struct {
	client    redis.UniversalClient
	redirects bool        // the client follows MOVED and ASK
	joint     atomic.Bool // commands about several keys may become one
	line      line
}

// New returns a writer to the client, which should heed the deadlines of contexts.
func New(client redis.UniversalClient, c Config) *Writer {
	if c.Lanes < 1 {
		c.Lanes = defaultLanes
	}
	if c.Batch < 1 {
		c.Batch = defaultBatch
	}
	w := &Writer{client: client, line: line{lanes: c.Lanes, batch: c.Batch, least: c.Timeout / 4, fresh: c.Timeout - c.Timeout/32}}
	_, w.redirects = client.(*redis.ClusterClient)
	_, single := client.(*redis.Client) // others may divide the keys among servers: a Cluster, a Ring, or who wraps one
	w.joint.Store(single)
	return w
}

// Do sends a command and returns its answer, which must be an array of integers, by the time at which it is due. The error is
// that of Redis or of the client, ErrLeft where the caller gives up, or ErrUnsent. Of the callers whose commands went together one led,
// so that what became of them can be counted once.
func (w *Writer) Do(ctx context.Context, due time.Time, args ...any) (answer []int64, led bool, err error) {
	return w.do(ctx, call{args: args, due: due})
}

// Decide runs a script that decides about each of its keys by itself, for one key: with those of other callers at once where they wait for the same
// script and one server has all keys. It sends the script's text where the server does not know it. Otherwise it is Do.
func (w *Writer) Decide(ctx context.Context, due time.Time, d *Decision, key string, args ...any) (answer []int64, led bool, err error) {
	return w.do(ctx, call{key: key, args: args, decision: d, due: due})
}

// do sends a call, and sends it again where the answer is that it was not executed and there is a reason to hope.
func (w *Writer) do(ctx context.Context, c call) (answer []int64, led bool, err error) {
	pause := firstPause
	var moving error // why it is tried again
	for {
		m := c // a new one each time: whoever took the last may still hold it
		answer, led, err = w.once(ctx, &m)
		switch {
		case err == nil:
			return answer, led, nil
		case moving != nil && errors.Is(err, ErrUnsent):
			return nil, led, moving // a server that answers is not to be taken for one that is slow
		case c.decision != nil && !c.whole && redis.HasErrorPrefix(err, "NOSCRIPT"):
			c.whole = true
		case redis.HasErrorPrefix(err, "CROSSSLOT") && m.shared:
			w.joint.Store(false) // a server in cluster mode behind a client, or a proxy, that does not say so
		case w.moving(err) && w.rest(ctx, pause, c.due):
			pause, moving = min(2*pause, longestPause), err
		case led && m.addr != "": // another caller's m may still be written to
			return answer, led, &ServerError{Addr: m.addr, Err: err}
		default:
			return answer, led, err
		}
	}
}

// moving reports whether the error says that the command was not executed because its slot is on its way to another server.
func (w *Writer) moving(err error) bool {
	if redis.IsTryAgainError(err) {
		return true
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return w.redirects && (moved || ask) // more often than the client follows: the servers do not agree yet
}

// rest waits some part of a pause, and reports whether there is time to try again.
func (w *Writer) rest(ctx context.Context, pause time.Duration, due time.Time) bool {
	pause = pause/2 + rand.N(pause/2)
	if time.Until(due)-pause < w.line.least {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once has a call sent once, by its own goroutine or another caller's.
func (w *Writer) once(ctx context.Context, c *call) (answer []int64, led bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, leftError{err}
	}
	left := time.Until(c.due)
	if left < w.line.least {
		return nil, false, ErrUnsent
	}
	if w.line.join(c) {
		w.lead(ctx, c)
		return c.answer, true, c.err
	}
	// Those who lead came earlier, so that their time is up earlier. But a caller that has asked something else before stands behind some
	// that came later.
	var late <-chan time.Time
	if left < w.line.fresh {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t := <-c.turn:
		switch {
		case t == lead:
			w.lead(ctx, c)
		case c.heir:
			w.line.pass()
		}
		return c.answer, t == lead, c.err
	case <-ctx.Done():
		w.line.leave(c)
		return nil, false, leftError{ctx.Err()} // who has taken c may be writing to it
	case <-late:
		if w.line.leave(c) {
			return nil, false, errLate
		}
		return nil, false, ErrUnsent
	}
}

// lead sends the command of c and those of the callers in the queue, and then hands on the lane.
func (w *Writer) lead(ctx context.Context, c *call) {
	batch := w.line.take(c)
	for _, m := range batch {
		m.err = errAborted // stays where send does not come back
	}
	defer func() {
		w.line.passAfter(batch)
		for _, m := range batch[1:] {
			m.turn <- done
		}
	}()
	// A batch has until its leader's due, whatever becomes of the leader's context: the others have not given up, and an
	// answer that came too late for a caller in a hurry says nothing about the server.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), c.due)
	defer cancel()
	commands := w.commands(ctx, batch)
	w.send(ctx, commands)
	for _, cmd := range commands {
		cmd.deal()
	}
}

// send sends commands, and returns when all have an answer or an error.
func (w *Writer) send(ctx context.Context, commands []*command) {
	if len(commands) == 1 {
		_ = w.client.Process(ctx, commands[0]) // the command has the error
		return
	}
	p := w.client.Pipeline()
	for _, cmd := range commands {
		_ = p.Process(ctx, cmd)
	}
	_, _ = p.Exec(ctx)
}
