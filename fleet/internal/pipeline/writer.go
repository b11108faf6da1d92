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
var ErrGaveUp = errors.New("pipeline: the caller has given up")

// errLate is the error of a caller in the batch of another, under way when its time is up.
var errNoAnswer = fmt.Errorf("pipeline: no answer in time: %w", context.DeadlineExceeded)

// errAborted is the error of those whose batch was given up by a panic or the end of a goroutine.
var errAborted = errors.New("pipeline: the batch was aborted")

// leftError is an ErrLeft with the error of the caller's context.
type gaveUpError struct{ error }

func (gaveUpError) Is(target error) bool { return target == ErrGaveUp }
func (e gaveUpError) Unwrap() error      { return e.error }

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
	client           redis.UniversalClient
	followsRedirects bool        // the client follows MOVED and ASK
	merges           atomic.Bool // commands about several keys may become one
	queue            queue
}

// New returns a writer to the client, which should heed the deadlines of contexts.
func New(client redis.UniversalClient, c Config) *Writer {
	if c.Lanes < 1 {
		c.Lanes = defaultLanes
	}
	if c.Batch < 1 {
		c.Batch = defaultBatch
	}
	w := &Writer{client: client, queue: queue{lanes: c.Lanes, maxBatch: c.Batch, minLeft: c.Timeout / 4, fullTime: c.Timeout - c.Timeout/32}}
	_, w.followsRedirects = client.(*redis.ClusterClient)
	_, single := client.(*redis.Client) // others may divide the keys among servers: a Cluster, a Ring, or who wraps one
	w.merges.Store(single)
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
		answer, led, err = w.sendOnce(ctx, &m)
		switch {
		case err == nil:
			return answer, led, nil
		case moving != nil && errors.Is(err, ErrUnsent):
			return nil, led, moving // a server that answers is not to be taken for one that is slow
		case c.decision != nil && !c.sendText && redis.HasErrorPrefix(err, "NOSCRIPT"):
			c.sendText = true
		case redis.HasErrorPrefix(err, "CROSSSLOT") && m.shared:
			w.merges.Store(false) // a server in cluster mode behind a client, or a proxy, that does not say so
		case w.slotMoving(err) && w.pauseBeforeRetry(ctx, pause, c.due):
			pause, moving = min(2*pause, longestPause), err
		case led && m.addr != "": // another caller's m may still be written to
			return answer, led, &ServerError{Addr: m.addr, Err: err}
		default:
			return answer, led, err
		}
	}
}

// moving reports whether the error says that the command was not executed because its slot is on its way to another server.
func (w *Writer) slotMoving(err error) bool {
	if redis.IsTryAgainError(err) {
		return true
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return w.followsRedirects && (moved || ask) // more often than the client follows: the servers do not agree yet
}

// rest waits some part of a pause, and reports whether there is time to try again.
func (w *Writer) pauseBeforeRetry(ctx context.Context, pause time.Duration, due time.Time) bool {
	pause = pause/2 + rand.N(pause/2)
	if time.Until(due)-pause < w.queue.minLeft {
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
func (w *Writer) sendOnce(ctx context.Context, c *call) (answer []int64, led bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, gaveUpError{err}
	}
	left := time.Until(c.due)
	if left < w.queue.minLeft {
		return nil, false, ErrUnsent
	}
	if w.queue.join(c) {
		w.lead(ctx, c)
		return c.answer, true, c.err
	}
	// Those who lead came earlier, so that their time is up earlier. But a caller that has asked something else before stands behind some
	// that came later.
	var late <-chan time.Time
	if left < w.queue.fullTime {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t := <-c.wake:
		switch {
		case t == becomeLeader:
			w.lead(ctx, c)
		case c.nextLeader:
			w.queue.passLane()
		}
		return c.answer, t == becomeLeader, c.err
	case <-ctx.Done():
		w.queue.leave(c)
		return nil, false, gaveUpError{ctx.Err()} // who has taken c may be writing to it
	case <-late:
		if w.queue.leave(c) {
			return nil, false, errNoAnswer
		}
		return nil, false, ErrUnsent
	}
}

// lead sends the command of c and those of the callers in the queue, and then hands on the lane.
func (w *Writer) lead(ctx context.Context, c *call) {
	batch := w.queue.takeBatch(c)
	for _, m := range batch {
		m.err = errAborted // stays where send does not come back
	}
	defer func() {
		w.queue.endBatch(batch)
		for _, m := range batch[1:] {
			m.wake <- answered
		}
	}()
	// A batch has until its leader's due, whatever becomes of the leader's context: the others have not given up, and an
	// answer that came too late for a caller in a hurry says nothing about the server.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), c.due)
	defer cancel()
	commands := w.commands(ctx, batch)
	w.send(ctx, commands)
	for _, cmd := range commands {
		cmd.distribute()
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
