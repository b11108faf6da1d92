package alert

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// batchLimit is the most alerts that a batcher gets at once: Prometheus's batch size.
const batchLimit = 64

// outbox delivers to one notifier what it is owed.
type outbox struct {
	notifier Notifier
	timeout  time.Duration
	logger   *slog.Logger
	guard    guard
	took     latency.Histogram // by attempts
	turn     chan struct{}     // held by the one who delivers

	mu      sync.Mutex    // guards what follows; nothing of the user's is called under it
	wake    chan struct{} // of the Run that goes on
	ledger  *ledger
	working outboxFigures
	failing bool // the latest attempt failed

	figures atomic.Pointer[outboxFigures] // the latest, for whoever looks
}

// outboxFigures are published as a whole and not changed after that.
type outboxFigures struct {
	attempts, delivered, superseded, postponed, dropped int64
	failed                                              [len(failures)]int64
	owed, alerts                                        int
	lastSuccess                                         time.Time
}

func newOutbox(n Notifier, timeout time.Duration, logger *slog.Logger) *outbox {
	var repeat time.Duration
	if r, ok := n.(repeater); ok {
		repeat = r.Repeat()
	}
	o := &outbox{
		notifier: n, timeout: timeout, logger: logger, turn: make(chan struct{}, 1), ledger: newLedger(repeat),
	}
	o.figures.Store(&outboxFigures{})
	return o
}

func (o *outbox) offer(alerts []Alert, at time.Time) {
	o.mu.Lock()
	o.ledger.offer(alerts, at)
	owed, wake := o.ledger.owed(), o.wake
	o.publish()
	o.mu.Unlock()
	if owed == 0 {
		return
	}
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run delivers until the context is done. It makes its own channel, so that a monitor that was
// made outside of a synctest bubble can be run in one.
func (o *outbox) run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	o.wakeBy(wake)
	defer o.wakeBy(nil)
	for o.drain(ctx) == nil {
		select {
		case <-ctx.Done():
		case <-wake:
		}
	}
}

func (o *outbox) wakeBy(wake chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wake = wake
}

// drain delivers until nothing is owed or the context is done. Between two attempts it is
// others' turn, so that a flush need not wait where a receiver has asked Run to.
func (o *outbox) drain(ctx context.Context) error {
	var pauses backoff
	for {
		pause, owed, err := o.deliver(ctx, &pauses)
		if err != nil || !owed {
			return err
		}
		_ = sleep(ctx, pause)
	}
}

// deliver makes one attempt, if anything is owed, and returns how long to wait before the
// next.
func (o *outbox) deliver(ctx context.Context, pauses *backoff) (pause time.Duration, owed bool, err error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	batch := o.take()
	if len(batch) == 0 {
		return 0, false, nil
	}
	began := time.Now()
	failed := o.attempt(ctx, batch)
	if failed == nil || ctx.Err() == nil {
		o.took.Record(time.Since(began))
	}
	fresh := o.settle(ctx, batch, failed)
	switch {
	case failed == nil:
		pauses.reset()
	case failed.refusal() && failed.RetryAfter() <= 0:
		if failed.Refused && !fresh {
			pause = refusedPause
		}
	default:
		pause = pauses.pause(failed.RetryAfter())
	}
	return pause, true, nil
}

// attempt calls the notifier once.
func (o *outbox) attempt(ctx context.Context, batch []Alert) *DeliveryError {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var err error
	called := o.guard.call(ctx, func() { err = o.send(ctx, batch) })
	switch {
	case called.fault == hung:
		return &DeliveryError{Kind: Timeout, Err: fmt.Errorf("no answer within %v", o.timeout)}
	case called.fault != noFault:
		return &DeliveryError{Kind: panicFailure, Err: fmt.Errorf("%s: %v", called.fault, called.detail)}
	case err != nil:
		return deliveryError(err)
	}
	return nil
}

func (o *outbox) send(ctx context.Context, batch []Alert) error {
	if b, ok := o.notifier.(batcher); ok {
		return b.NotifyAll(ctx, batch)
	}
	return o.notifier.Notify(ctx, batch[0])
}

func (o *outbox) take() []Alert {
	limit := 1
	if _, ok := o.notifier.(batcher); ok {
		limit = batchLimit
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return cloned(o.ledger.take(limit, time.Now()))
}

// settle books an attempt, and reports whether the next alert is one that was not refused
// before. An attempt that was cut short by the end of the delivery says nothing about the
// notifier.
func (o *outbox) settle(ctx context.Context, batch []Alert, failed *DeliveryError) (fresh bool) {
	o.mu.Lock()
	wasFailing := o.failing
	o.ledger.settle(batch, failed, time.Now())
	fresh = o.ledger.fresh()
	if failed == nil || ctx.Err() == nil {
		o.book(len(batch), failed)
	}
	isFailing := o.failing
	o.publish()
	o.mu.Unlock()
	o.tell(wasFailing, isFailing, failed)
	return fresh
}

func (o *outbox) book(size int, failed *DeliveryError) {
	o.failing = failed != nil
	o.working.attempts++
	if failed != nil {
		o.working.failed[failed.Kind.index()]++
		return
	}
	o.working.delivered += int64(size)
	o.working.lastSuccess = time.Now()
}

// publish is called with the lock held.
func (o *outbox) publish() {
	figures := o.working
	figures.superseded, figures.postponed, figures.dropped = o.ledger.superseded, o.ledger.postponed, o.ledger.dropped
	figures.owed, figures.alerts = o.ledger.owed(), len(o.ledger.entries)
	o.figures.Store(&figures)
}

// tell logs what was refused for good, the first failure of a row, and its end.
func (o *outbox) tell(was, is bool, failed *DeliveryError) {
	name := slog.String("notifier", o.notifier.Name())
	switch {
	case is && failed.Permanent:
		o.logger.Error("alert: refused by its receiver", name, "error", failed.Error())
	case is && !was && failed.Refused:
		o.logger.Error("alert: refused by its receiver, will try again", name, "error", failed.Error(), "after", o.ledger.retry)
	case is && !was:
		o.logger.Warn("alert: cannot deliver, will try again", name, "error", failed.Error())
	case was && !is:
		o.logger.Info("alert: delivers again", name)
	}
}

// flush drains and says what is left: what was refused is tried once more.
func (o *outbox) flush(ctx context.Context) error {
	o.mu.Lock()
	o.ledger.hurry()
	o.mu.Unlock()
	err := o.drain(ctx)
	owed := o.figures.Load().owed
	switch {
	case err != nil:
		return fmt.Errorf("alert: not everything was delivered: %q is owed %d: %w", o.notifier.Name(), owed, err)
	case owed > 0:
		return fmt.Errorf("alert: not everything was delivered: %q refuses %d", o.notifier.Name(), owed)
	}
	return nil
}
