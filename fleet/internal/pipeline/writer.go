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

// ErrUnsent is matched by the error of a command that was not sent, because it was due before it
// got a lane. It also matches context.DeadlineExceeded.
var ErrUnsent = fmt.Errorf("pipeline: not sent in time: %w", context.DeadlineExceeded)

// ErrGaveUp is matched by the error of a caller whose context ended before there was an answer. The
// error also matches that of the context. It says nothing about the server.
var ErrGaveUp = errors.New("pipeline: the caller gave up")

// errNoAnswer is the error of a caller whose time ended while another caller was sending its
// command.
var errNoAnswer = fmt.Errorf("pipeline: no answer in time: %w", context.DeadlineExceeded)

// errAborted is the error of a batch that ended by a panic or runtime.Goexit.
var errAborted = errors.New("pipeline: the batch was aborted")

// gaveUpError is an ErrGaveUp with the error of the caller's context.
type gaveUpError struct{ error }

func (gaveUpError) Is(target error) bool { return target == ErrGaveUp }
func (e gaveUpError) Unwrap() error      { return e.error }

// ServerError is the error of a command whose server is known. In a Cluster that may be another
// server than the one that had the key when the client last asked.
type ServerError struct {
	Addr string
	Err  error
}

// Error returns the text of Err.
func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ServerError) Unwrap() error { return e.Err }

// Config configures a [Writer].
type Config struct {
	// Timeout is the time that a caller usually has until it is due. Must be above 0.
	Timeout time.Duration
	// Lanes is how many writes may be in progress at once. Default 4.
	Lanes int
	// Batch is the maximum number of callers per batch. Default 128.
	Batch int
	// Gather is how long a caller that finds a free lane waits for others, to send their commands
	// with its own. Default 0.
	Gather time.Duration
}

const (
	defaultLanes = 4
	defaultBatch = 128
)

// The pauses before a command is sent again while a Cluster moves its slot.
const firstPause, longestPause = time.Millisecond, 16 * time.Millisecond

// Writer sends commands, those of concurrent callers together. It is safe for concurrent use. It
// has neither connections nor goroutines of its own, so there is nothing to close. The zero value
// does not work: use [New].
type Writer struct {
	client           redis.UniversalClient
	followsRedirects bool        // the client follows MOVED and ASK
	merges           atomic.Bool // decisions about several keys may become one command
	gather           time.Duration
	queue            queue
}

// New returns a Writer for a client, which should obey the deadlines of contexts.
func New(client redis.UniversalClient, c Config) *Writer {
	if c.Lanes < 1 {
		c.Lanes = defaultLanes
	}
	if c.Batch < 1 {
		c.Batch = defaultBatch
	}
	w := &Writer{client: client, gather: c.Gather, queue: queue{
		lanes: c.Lanes, maxBatch: c.Batch, minLeft: c.Timeout / 4, fullTime: c.Timeout - c.Timeout/32,
	}}
	_, w.followsRedirects = client.(*redis.ClusterClient)
	_, single := client.(*redis.Client) // other clients may distribute keys over several servers
	w.merges.Store(single)
	return w
}

// Do sends a command and returns its reply, which must be an array of integers. It returns by the
// time due. led reports that the caller led its batch, so that the outcome of a batch can be
// counted once.
//
// The error is that of Redis or of the client, or matches ErrGaveUp or ErrUnsent.
func (w *Writer) Do(ctx context.Context, due time.Time, args ...any) (answer []int64, led bool, err error) {
	return w.do(ctx, call{args: args, due: due})
}

// Decide runs a Decision for one key. If one server has all keys, callers that wait for the same
// script share one command. Decide sends the text of the script if the server does not know it.
// Otherwise it is like Do.
func (w *Writer) Decide(ctx context.Context, due time.Time, d *Decision, key string, args ...any) (answer []int64, led bool, err error) {
	return w.do(ctx, call{key: key, args: args, decision: d, due: due})
}

// do sends a call, and sends it again if the reply says that it was not executed.
func (w *Writer) do(ctx context.Context, c call) (answer []int64, led bool, err error) {
	pause := firstPause
	var retried error // why the call was sent again
	for {
		m := c // a copy per attempt: the leader of the last attempt may still write to its copy
		answer, led, err = w.sendOnce(ctx, &m)
		switch {
		case err == nil:
			return answer, led, nil
		case retried != nil && errors.Is(err, ErrUnsent):
			return nil, led, retried // the server has answered, so this is not a timeout
		case c.decision != nil && !c.sendText && redis.HasErrorPrefix(err, "NOSCRIPT"):
			c.sendText = true
		case redis.HasErrorPrefix(err, "CROSSSLOT") && m.shared:
			w.merges.Store(false) // a proxy, or a server in cluster mode behind a plain client
		case w.isSlotMoving(err) && w.pauseBeforeRetry(ctx, pause, c.due):
			pause, retried = min(2*pause, longestPause), err
		case led && m.addr != "": // without led, another caller may still write to m
			return answer, led, &ServerError{Addr: m.addr, Err: err}
		default:
			return answer, led, err
		}
	}
}

// isSlotMoving reports whether a command was not executed because its slot is being moved.
func (w *Writer) isSlotMoving(err error) bool {
	if redis.IsTryAgainError(err) {
		return true
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return w.followsRedirects && (moved || ask) // the servers redirect to each other
}

// pauseBeforeRetry pauses for a random part of pause, and reports whether there is time to try
// again.
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

// sendOnce sends a call once, in its own goroutine or in that of another caller.
func (w *Writer) sendOnce(ctx context.Context, c *call) (answer []int64, led bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, gaveUpError{err}
	}
	left := time.Until(c.due)
	if left < w.queue.minLeft {
		return nil, false, ErrUnsent
	}
	if w.queue.join(c) {
		if w.gather > 0 {
			<-time.After(w.gather)
		}
		w.sendWithQueue(ctx, c)
		return c.answer, true, c.err
	}
	// A leader usually came earlier than the callers behind it and is due earlier, so it ends their
	// wait in time. But a call that is sent again stands behind callers that came later, so it
	// needs a timer.
	var late <-chan time.Time
	if left < w.queue.fullTime {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case s := <-c.wake:
		switch {
		case s == becomeLeader:
			w.sendWithQueue(ctx, c)
		case c.nextLeader:
			w.queue.passLane()
		}
		return c.answer, s == becomeLeader, c.err
	case <-ctx.Done():
		w.queue.leave(c)
		return nil, false, gaveUpError{ctx.Err()} // the leader may still write to c
	case <-late:
		if w.queue.leave(c) {
			return nil, false, errNoAnswer
		}
		return nil, false, ErrUnsent
	}
}

// sendWithQueue sends the command of c with those of the queue, and then passes the lane on.
func (w *Writer) sendWithQueue(ctx context.Context, c *call) {
	batch := w.queue.takeBatch(c)
	for _, m := range batch {
		m.err = errAborted // replaced unless send panics
	}
	defer func() {
		w.queue.endBatch(batch)
		for _, m := range batch[1:] {
			m.wake <- answered
		}
	}()
	// A batch may take until its leader is due, even if the leader's context ends, because the
	// other callers have not given up. Also, a reply that comes too late for one caller says
	// nothing about the server.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), c.due)
	defer cancel()
	commands := w.commands(ctx, batch)
	w.send(ctx, commands)
	for _, cmd := range commands {
		cmd.distributeReply()
	}
}

// send sends commands and returns when all have a reply or an error.
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
