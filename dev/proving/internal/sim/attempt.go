package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// attempt is one of the tries of a call. It is sent if the guard lets it through.
type attempt struct {
	call   *call
	number int // counted from 0
	ctx    deadline
	done   chan struct{} // receives once the caller has a result
	step   func(error)   // the second step of a Stepped guard

	// These values are drawn at random. They do not depend on what happens to the attempt.
	host    int
	time    time.Duration // the time that a server works on it on a good day
	luck    float64       // it fails if this is below the error rate
	backoff float64       // 0 to 1
	slow    float64       // a fault slows it down if this is below the fault's share
	loss    float64       // it gets no answer if this is below the share of lost ones

	began   time.Duration
	sent    bool
	sentAt  time.Duration
	over    bool  // the caller has a result
	err     error // the result
	pending bool  // the answer waits for the suspended process
	answer  error

	attemptRecord // in the service
}

func newAttempt(k *call, number int) *attempt {
	a := &attempt{call: k, number: number}
	a.ctx.run, a.ctx.attempt = k.client.run, a
	r := randomFor(uint64(k.random), uint64(number))
	s := &k.client.run.world.Service
	a.host = int(r.next() * float64(max(s.Hosts, 1)))
	if s.InTurn {
		a.host = (k.index + max(k.user, 0) + number) % max(s.Hosts, 1)
	}
	a.time = max(s.Time.At(r.next()), 0)
	a.luck = r.next()
	a.backoff = r.next()
	a.slow = r.next()
	a.loss = r.next()
	return a
}

// isBefore orders attempts by their call.
func (a *attempt) isBefore(b *attempt) bool {
	return cmp.Or(
		cmp.Compare(a.call.client.index, b.call.client.index),
		cmp.Compare(a.call.user, b.call.user),
		cmp.Compare(a.call.index, b.call.index),
		cmp.Compare(a.number, b.number),
	) < 0
}

// begin starts the goroutine of the attempt, or waits until its process is no longer suspended.
func (a *attempt) begin() {
	r, c := a.call.client.run, a.call.client
	now := r.now()
	if c.Suspended.holds(now) {
		r.push(event{at: c.Suspended.To, kind: begin, attempt: a})
		return
	}
	if a.number == 0 {
		a.call.host = a.host
		a.call.begin(now)
	}
	a.began = now
	switch k := a.call; {
	case k.leaves > 0:
		a.ctx.at, a.ctx.silent = k.began+k.leaves, true
	case k.hurried:
		a.ctx.at = now + c.Hurried
	case c.Timeout > 0:
		a.ctx.at, a.ctx.silent = now+c.Timeout, c.Cancels
	default:
		a.ctx.at, a.ctx.silent = endlessTime, true
	}
	if a.ctx.at < endlessTime {
		r.push(event{at: a.ctx.at, kind: expire, attempt: a})
	}
	p := r.processes[a.call.process]
	if g, ok := p.guard.(Stepped); ok {
		a.firstStep(p, g)
		return
	}
	a.done = make(chan struct{}, 1)
	r.woken = true
	go a.run(p)
}

// firstStep makes the attempt through a guard that needs no goroutine. The driver calls it.
func (a *attempt) firstStep(p *process, g Stepped) {
	var e ending
	var opened bool
	a.call.client.run.callUnlocked(func() {
		if a.step, e.err = g.Begin(&a.ctx); e.err != nil {
			e, opened = p.endingOf(e.err)
		}
	})
	if e.err != nil {
		a.over = true
		a.returned(e, opened)
		return
	}
	a.enter()
}

// secondStep ends an attempt that has a result.
func (a *attempt) secondStep() {
	r := a.call.client.run
	var e ending
	var opened bool
	r.callUnlocked(func() {
		a.step(a.err)
		e, opened = r.processes[a.call.process].endingOf(a.err)
	})
	a.returned(e, opened)
}

// endingOf returns how an attempt ended for which the guard returned err, and whether the guard has
// opened since the warmup. It is called without the lock.
func (p *process) endingOf(err error) (e ending, opened bool) {
	e.err = err
	if err == nil {
		return e, false
	}
	e.retryAfter, e.refused = p.guard.Refusal(err)
	return e, p.guard.Openings() > p.openings
}

// returned notes the end of an attempt for its caller.
func (a *attempt) returned(e ending, opened bool) {
	a.ctx.end(context.Canceled)
	a.call.client.run.tally.addAttempt(a, opened)
	a.call.attempted(a, e)
}

// run makes the attempt through the guard.
func (a *attempt) run(p *process) {
	r := a.call.client.run
	finished := false
	defer func() {
		if finished {
			return
		}
		panicked := recover() // nil after runtime.Goexit
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fail(fmt.Errorf("the guard panicked: %v\n%s", panicked, debug.Stack()))
	}()
	e, opened := p.endingOf(p.guard.Call(&a.ctx, a.send))
	finished = true

	r.mu.Lock()
	defer r.mu.Unlock()
	a.end(context.Canceled)
	if e.err == nil && (!a.sent || a.err != nil) {
		r.fail(errors.New("the guard returned no error for an attempt that failed"))
		return
	}
	a.returned(e, opened)
	r.notifyDriver()
}

// send sends the attempt to the service. It is the function that the guard calls.
func (a *attempt) send(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := a.call.client.run
	r.mu.Lock()
	if a.sent {
		r.mu.Unlock()
		panic("sim: a guard has called the function twice")
	}
	a.enter()
	r.notifyDriver()
	r.mu.Unlock()

	if ctx == context.Context(&a.ctx) {
		<-a.done
	} else {
		select {
		case <-a.done:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.over { // the guard has a timeout of its own
		a.end(ctx.Err())
		r.notifyDriver()
	}
	return a.err
}

// enter schedules the arrival at the service.
func (a *attempt) enter() {
	r := a.call.client.run
	a.sent, a.sentAt = true, r.now()
	r.service.pending++
	r.push(event{at: a.sentAt, kind: enter, attempt: a})
}

// end gives the caller a result, unless it already has one.
func (a *attempt) end(err error) {
	if a.over {
		return
	}
	r := a.call.client.run
	a.over, a.err = true, err
	if a.step != nil {
		r.ended = append(r.ended, a)
		return
	}
	r.woken = true
	a.done <- struct{}{}
}

// deliverAnswer is called by the service with its answer.
func (a *attempt) deliverAnswer(err error) {
	c := a.call.client
	switch {
	case a.over:
	case c.Suspended.holds(c.run.now()):
		a.pending, a.answer = true, err
		c.run.push(event{at: c.Suspended.To, kind: wake, attempt: a})
	default:
		a.end(err)
	}
}

// expire ends the attempt at its deadline, or when its client leaves. When a suspended process
// continues, it may find an answer and a timeout at the same time. It takes the timeout.
func (a *attempt) expire() {
	c := a.call.client
	if c.Suspended.holds(c.run.now()) {
		c.run.push(event{at: c.Suspended.To, kind: expire, attempt: a})
		return
	}
	cause := context.DeadlineExceeded
	if a.ctx.silent {
		cause = context.Canceled
	}
	if k := a.call; k.leaves > 0 {
		k.left = true
		k.served = a.sent && !a.over && c.run.service.endStream(a)
	}
	a.end(cause)
	a.ctx.end(cause)
}

// wake delivers the answer that arrived while the process was suspended.
func (a *attempt) wake() { a.end(a.answer) }
