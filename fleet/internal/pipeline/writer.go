package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnsent is matched by the error of a command that was not sent, because its time was up before its turn came.
// It matches context.DeadlineExceeded too.
var ErrUnsent = fmt.Errorf("pipeline: not sent in time: %w", context.DeadlineExceeded)

// errAborted is the error of those whose batch was given up by a panic or the end of a goroutine.
var errAborted = errors.New("pipeline: the batch was aborted")

// Config says how a [Writer] sends.
type Config struct {
	Timeout time.Duration // the most that a call lasts. Must be above 0.
	Lanes   int           // how many writes are under way at once, in each queue. Default 4, or 2 in a Cluster.
	Batch   int           // the most commands in one write. Default 128.
}

const (
	defaultLanes, clusterLanes = 4, 2
	defaultBatch               = 128
)

// Writer sends commands, those of concurrent callers together. It is made with New and safe for
// concurrent use. There is nothing to close: it has neither connections nor goroutines of its own.
type Writer struct {
	client  redis.UniversalClient
	timeout time.Duration
	joint   bool   // commands about several keys may become one
	lines   []line // one, or those that the slots of a Cluster are divided among
}

// New returns a writer to the client, which should heed the deadlines of contexts.
func New(client redis.UniversalClient, c Config) *Writer {
	lines, lanes := 1, defaultLanes
	if _, ok := client.(*redis.ClusterClient); ok {
		lines, lanes = clusterLines, clusterLanes
	}
	if c.Lanes > 0 {
		lanes = c.Lanes
	}
	if c.Batch < 1 {
		c.Batch = defaultBatch
	}
	w := &Writer{client: client, timeout: c.Timeout, lines: make([]line, lines)}
	_, w.joint = client.(*redis.Client) // others may divide the keys among servers: a Cluster, a Ring, or who wraps one
	for i := range w.lines {
		w.lines[i] = line{lanes: lanes, batch: c.Batch, least: c.Timeout / 4}
	}
	return w
}

// Do sends a command and returns its answer, which must be an array of integers. The key is one of those
// that the command touches. The error is that of Redis or of the client, that of ctx where the caller gives up, or
// ErrUnsent.
func (w *Writer) Do(ctx context.Context, key string, args ...any) ([]int64, error) {
	return w.do(ctx, &call{key: key, args: args})
}

// Decide runs a script that decides about each of its keys by itself, for one key: with those of other callers at once where they wait for the same
// script and the client is not one for a Cluster, whose slots that would mix. It sends the script's text where the server
// does not know it. Otherwise it is Do.
func (w *Writer) Decide(ctx context.Context, d *Decision, key string, args ...any) ([]int64, error) {
	answer, err := w.do(ctx, &call{key: key, args: args, decision: d})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return w.do(ctx, &call{key: key, args: args, decision: d, whole: true})
	}
	return answer, err
}

func (w *Writer) do(ctx context.Context, c *call) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	c.due = now.Add(w.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(c.due) {
		c.due, c.hasty = d, d.Sub(now) < w.timeout*3/4
	}
	l := w.line(c.key)
	if l.join(c) {
		w.lead(ctx, l, c)
		return c.answer, c.err
	}
	select {
	case t := <-c.turn:
		switch {
		case t == lead:
			w.lead(ctx, l, c)
		case c.heir:
			l.pass()
		}
		return c.answer, c.err
	case <-ctx.Done():
		l.leave(c)
		return nil, ctx.Err() // who has taken c may be writing to it
	}
}

// lead sends the command of c and those of the callers in the queue, and then hands on the lane.
func (w *Writer) lead(ctx context.Context, l *line, c *call) {
	batch := l.take(c)
	for _, m := range batch {
		m.err = errAborted // stays where send does not come back
	}
	defer func() {
		l.passAfter(batch)
		for _, m := range batch[1:] {
			m.turn <- done
		}
	}()
	commands := w.commands(ctx, batch)
	w.send(ctx, c, commands)
	for _, cmd := range commands {
		cmd.deal()
	}
}

// send sends the commands of the batch that c leads, and returns when all have an answer or an error.
func (w *Writer) send(ctx context.Context, c *call, commands []*command) {
	if len(commands) > 1 || len(commands[0].calls) > 1 {
		ctx = context.WithoutCancel(ctx) // the others have not given up when c does
	}
	if d, ok := ctx.Deadline(); !ok || d.After(c.due) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.due)
		defer cancel()
	}
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

// line returns the queue for the key.
func (w *Writer) line(key string) *line {
	if len(w.lines) == 1 {
		return &w.lines[0]
	}
	return &w.lines[slot(key)*len(w.lines)/slots]
}
