package alert

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// maxBatch is the maximum number of alerts per call of NotifyAll, as in Prometheus.
const maxBatch = 64

// deliverer delivers the alerts of a queue to one notifier.
type deliverer struct {
	name      string
	receiver  atomic.Pointer[receiver]
	durations latency.Histogram
	attempt   fairLock     // held during an attempt
	running   atomic.Int32 // calls of this notifier and of the notifiers that it has replaced

	state *stateStore // where deliveries are saved

	mu      sync.Mutex // not held while user code runs
	wake    chan struct{}
	queue   *queue
	stats   deliveryStats
	failing bool // the latest attempt failed

	restored map[string]*entry // of a state file, until the next update

	published atomic.Pointer[deliveryStats] // a copy for readers, never changed
}

type deliveryStats struct {
	attempts, delivered, superseded, refusals, dropped, silenced int64
	failed                                                       [len(errorKinds)]int64
	// undelivered, and all in the queue
	pending, alerts int
	lastSuccess     time.Time
	failingSince    time.Time // zero if the latest attempt succeeded
	lastError       string    // of the latest attempt that failed
	droppedAt       time.Time // the last time
}

// receiver is the notifier of a deliverer, and the function that calls it. It never changes.
type receiver struct {
	notifier Notifier
	batch    batchNotifier // the notifier, if it takes batches
	timeout  time.Duration
	logger   *slog.Logger
	guard    *guard
}

func newDeliverer(name string, state *stateStore) *deliverer {
	d := &deliverer{name: name, queue: newQueue(0), state: state}
	d.published.Store(&deliveryStats{})
	return d
}

// setReceiver sets or replaces the notifier. An attempt in progress continues with the notifier and
// the timeout that it began with.
func (d *deliverer) setReceiver(next receiverConfig, c Config) {
	n := next.notifier
	r := &receiver{notifier: n, timeout: c.Timeout, logger: c.Logger, guard: &guard{running: &d.running}}
	r.batch, _ = n.(batchNotifier)
	if old := d.receiver.Load(); old != nil && reflect.ValueOf(n).Comparable() && old.notifier == n {
		r.guard = old.guard // a call of the notifier may still hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue.ownSilences = next.ownSilences
	d.queue.setRepeat(next.repeat)
	d.receiver.Store(r)
}

// update queues the alerts of an evaluation and wakes run.
func (d *deliverer) update(alerts []Alert, at time.Time) {
	d.mu.Lock()
	d.queue.restore(d.restored)
	d.restored = nil
	d.queue.update(alerts, at)
	pending, wake := d.queue.pending(), d.wake
	d.publish()
	d.mu.Unlock()
	if pending == 0 {
		return
	}
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run delivers until ctx is done. It makes the wake channel itself, because a channel made outside
// a synctest bubble cannot be used in one.
func (d *deliverer) run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	d.setWake(wake)
	defer d.setWake(nil)
	for d.deliverAll(ctx) == nil {
		select {
		case <-ctx.Done():
		case <-wake:
		}
	}
}

func (d *deliverer) setWake(wake chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = wake
}

// flush delivers everything, and tries refused alerts once more.
func (d *deliverer) flush(ctx context.Context) error {
	d.mu.Lock()
	d.queue.makeRefusedDue()
	d.mu.Unlock()
	err := d.deliverAll(ctx)
	pending := d.published.Load().pending
	switch {
	case err != nil:
		return fmt.Errorf("alert: notifier %q has %d undelivered alerts: %w", d.name, pending, err)
	case pending > 0:
		return fmt.Errorf("alert: notifier %q refused %d alerts", d.name, pending)
	}
	return nil
}

// deliverAll delivers until no alert is due or ctx is done. Run and Flush may take turns: while Run
// waits because a receiver has asked for a pause, Flush makes its attempts.
func (d *deliverer) deliverAll(ctx context.Context) error {
	var pauses backoff
	for {
		pause, more, err := d.deliverNext(ctx, &pauses)
		if err != nil || !more {
			return err
		}
		_ = sleep(ctx, pause)
	}
}

// deliverNext makes one attempt and returns the pause before the next. more is false if no alert
// was due.
func (d *deliverer) deliverNext(ctx context.Context, pauses *backoff) (pause time.Duration, more bool, err error) {
	if err := d.attempt.lock(ctx); err != nil {
		return 0, false, err
	}
	defer d.attempt.unlock()
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	r := d.receiver.Load()
	batch := d.nextBatch(r)
	if len(batch) == 0 {
		return 0, false, nil
	}
	began := time.Now()
	failed := r.send(ctx, batch)
	if failed == nil || ctx.Err() == nil {
		d.durations.Record(time.Since(began))
	}
	nextIsNew := d.finish(ctx, batch, failed)
	switch {
	case failed == nil:
		pauses.reset()
	case failed.rejected() && failed.RetryAfter() <= 0:
		if failed.Refused && !nextIsNew {
			pause = refusedPause
		}
	default:
		pause = pauses.next(failed.RetryAfter())
	}
	return pause, true, nil
}

func (d *deliverer) nextBatch(r *receiver) []Alert {
	limit := 1
	if r.batch != nil {
		limit = maxBatch
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return cloned(d.queue.nextBatch(limit, time.Now()))
}

// send calls the notifier once.
func (r *receiver) send(ctx context.Context, batch []Alert) *DeliveryError {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var err error
	result := r.guard.call(ctx, func() {
		if r.batch != nil {
			err = r.batch.NotifyAll(ctx, batch)
		} else {
			err = r.notifier.Notify(ctx, batch[0])
		}
	})
	switch {
	case result.fault == hung:
		return &DeliveryError{Kind: kindTimeout, Err: fmt.Errorf("no answer within %v", r.timeout)}
	case result.fault != noFault:
		return &DeliveryError{Kind: kindPanic, Err: fmt.Errorf("%s: %v", result.fault, result.value)}
	case err != nil:
		return asDeliveryError(err)
	}
	return nil
}

// finish records an attempt and reports whether the next alert was not refused before. An attempt
// that failed because ctx ended says nothing about the notifier and is not counted.
func (d *deliverer) finish(ctx context.Context, batch []Alert, failed *DeliveryError) (nextIsNew bool) {
	d.mu.Lock()
	wasFailing := d.failing
	d.queue.finish(batch, failed, time.Now())
	nextIsNew = d.queue.nextIsNew()
	if failed == nil || ctx.Err() == nil {
		d.count(len(batch), failed)
	}
	isFailing := d.failing
	d.publish()
	retry := d.queue.retry
	d.mu.Unlock()
	if failed == nil || failed.Permanent {
		d.state.saveDeliveries(d, batch)
	}
	d.log(batch, wasFailing, isFailing, failed, retry)
	return nextIsNew
}

// count is called with the lock held.
func (d *deliverer) count(alerts int, failed *DeliveryError) {
	d.failing = failed != nil
	d.stats.attempts++
	if failed != nil {
		d.stats.failed[kindIndex(failed.Kind)]++
		d.stats.lastError = failed.Error()
		if d.stats.failingSince.IsZero() {
			d.stats.failingSince = time.Now()
		}
		return
	}
	d.stats.failingSince = time.Time{}
	d.stats.delivered += int64(alerts)
	d.stats.lastSuccess = time.Now()
}

// publish is called with the lock held.
func (d *deliverer) publish() {
	if d.queue.dropped > d.stats.dropped {
		d.stats.dropped, d.stats.droppedAt = d.queue.dropped, time.Now()
	}
	stats, q := d.stats, d.queue
	stats.superseded, stats.refusals = q.superseded, q.refusals
	stats.silenced, stats.pending, stats.alerts = q.silenced, q.pending(), len(q.entries)
	d.published.Store(&stats)
}

// log logs each permanent failure, the first of several other failures, and the success after them.
func (d *deliverer) log(batch []Alert, was, is bool, failed *DeliveryError, retry time.Duration) {
	of, logger := []any{"weir.notifier.name", d.name}, d.receiver.Load().logger
	if failed != nil && len(batch) == 1 {
		of = append(of, ruleAttrs(batch[0].Rule, batch[0].Key)...)
	}
	if failed != nil {
		of = append(of, "error", failed.Error())
	}
	switch {
	case is && failed.Permanent:
		logger.Error("alert: receiver refused an alert", of...)
	case is && !was && failed.Refused:
		logger.Error("alert: receiver refused an alert, will retry", append(of, "after", retry)...)
	case is && !was:
		logger.Warn("alert: delivery failed, will retry", of...)
	case was && !is:
		logger.Info("alert: delivery recovered", of...)
	}
}

// Pauses between the attempts of a notifier.
const (
	firstPause    = time.Second
	maxPause      = 30 * time.Second // shorter than any sensible Repeat
	maxAskedPause = time.Hour        // the longest pause that a receiver may ask for
	// after a refusal, if the next alert was refused before or none is left.
	refusedPause = time.Second
)

// backoff computes pauses with "full jitter": each pause is drawn uniformly from zero to a bound
// that doubles with every failure. Source: "Exponential Backoff And Jitter", AWS Architecture Blog,
// 2015.
type backoff struct{ failures int }

func (b *backoff) reset() { b.failures = 0 }

// next counts one more failure and returns the pause after it. The pause is at least asked, or
// maxAskedPause if asked is longer.
func (b *backoff) next(asked time.Duration) time.Duration {
	bound := min(firstPause<<min(b.failures, 10), maxPause)
	b.failures++
	return max(rand.N(bound), min(asked, maxAskedPause))
}

// sleep waits for d. If ctx is done before, it returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
