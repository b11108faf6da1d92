package lease

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/fleet/internal/detach"
	"github.com/weir-go/weir/limiter"
)

// Server grants tokens.
type Server interface {
	// Take takes n tokens, all or none. An error means that there is no answer.
	Take(ctx context.Context, key string, n int) (limiter.Result, error)
	// Refund gives back those of n tokens that still count, given the time since they were taken.
	Refund(ctx context.Context, key string, n int, age time.Duration) error
}

// Config configures a [Pool]. All fields must be given.
type Config struct {
	// Max is the maximum number of tokens of a key that are held.
	Max int
	// Keys is the maximum number of keys that are known.
	Keys int
	// Age is the time after which an unused key gives its tokens back.
	Age time.Duration
	// Timeout is the longest that a Take may spend on the server altogether: waiting for the refill
	// of another caller, giving tokens back, and asking. After that, the error is
	// context.DeadlineExceeded, or the error that the server makes of it.
	Timeout time.Duration
}

// Pool holds the leases of one node. It is safe for concurrent use. Take and Close block as long as
// the server does. The zero value does not work: use [New].
type Pool struct {
	server Server
	config Config
	epoch  time.Time

	mu     sync.Mutex
	closed bool
	leases map[string]*list.Element // of *lease
	byUse  list.List                // the most recently used first
	due    time.Duration            // when returnIdle will be called
	timer  uint64                   // counts timers; the last one is to call returnIdle
	timed  bool                     // there is a timer

	returning chan struct{} // has an element while returnIdle runs
}

// New returns a pool without leases.
func New(s Server, c Config) *Pool {
	return &Pool{server: s, config: c, epoch: time.Now(), leases: map[string]*list.Element{}, returning: make(chan struct{}, 1)}
}

// Take takes n tokens of the key, all or none, from the pool or from the server. held reports that
// they came from the pool, and age how long the pool has held the oldest of its tokens, so that
// they can be given back. The result's Remaining is that of the server's last answer, less what was
// handed out since.
func (p *Pool) Take(ctx context.Context, key string, n int) (r limiter.Result, held bool, age time.Duration, err error) {
	if n < 1 {
		r, err = p.server.Take(ctx, key, n)
		return r, false, 0, err
	}
	now := p.now()
	p.mu.Lock()
	l, late := p.get(key, now)
	p.setTimer(now)
	if l.held >= n {
		defer p.mu.Unlock()
		return l.handOut(n, now), true, now - l.heldSince, nil
	}
	refill, evicted := l.refill, p.makeRoom(l)
	p.mu.Unlock()
	due := time.Now().Add(p.config.Timeout)
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, deadlineKey{}, due), due)
	defer cancel()
	for _, unused := range []lease{late, evicted} {
		_ = p.refund(ctx, unused) // on an error the tokens are lost
	}
	if refill != nil {
		if r, held, age, err = p.awaitRefill(ctx, refill, l, n); held || err != nil {
			return r, held, age, err
		}
	}
	r, err = p.takeFromServer(ctx, l, n)
	return r, false, 0, err
}

// Close gives all held tokens back. After that, the pool takes no leases. The error is the
// server's; tokens that it did not take back are lost.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var all []lease
	for e := p.byUse.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*lease).takeAll())
	}
	p.mu.Unlock()
	var errs []error
	select {
	case p.returning <- struct{}{}: // returnIdle has given back what it had taken
		<-p.returning
	case <-ctx.Done():
		errs = append(errs, ctx.Err())
	}
	for _, l := range all {
		errs = append(errs, p.refund(ctx, l))
	}
	return errors.Join(errs...)
}

// Forget drops the held tokens of a key without giving them back.
func (p *Pool) Forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.leases[key]; known {
		e.Value.(*lease).takeAll()
	}
}

// get returns the key's lease. If there is no room for a new key, it returns a lease that is not in
// the pool. late are the tokens that returnIdle should have given back. The caller holds p.mu.
func (p *Pool) get(key string, now time.Duration) (l *lease, late lease) {
	if e, known := p.leases[key]; known {
		p.byUse.MoveToFront(e)
		l = e.Value.(*lease)
		switch {
		case p.otherClock(l, now):
			l.takeAll()
		case now-l.usedAt > 2*p.config.Age && l.refill == nil:
			late = l.takeAll()
		}
		l.usedAt = now
		return l, late
	}
	// The key is copied, because it may be part of a large string.
	l = &lease{key: strings.Clone(key), size: 1, usedAt: now, answeredAt: now - p.config.Age}
	if len(p.leases) < p.config.Keys {
		p.leases[l.key] = p.byUse.PushFront(l)
	}
	return l, lease{}
}

// otherClock reports whether the lease was last used by another clock, such as that of another
// testing/synctest bubble: see clock.IsNew. The tokens of such a lease are lost, because it is not
// known how many of them still count.
func (p *Pool) otherClock(l *lease, now time.Duration) bool { return now < l.usedAt-time.Second }

// setTimer makes sure that returnIdle will be called if there are keys. A timer that is late is
// replaced, since it may have stopped with a testing/synctest bubble. The caller holds p.mu.
func (p *Pool) setTimer(now time.Duration) {
	if p.byUse.Len() == 0 || p.timed && now <= p.due+p.config.Age && now >= p.due-2*p.config.Age {
		return
	}
	p.timer++
	timer := p.timer
	p.due, p.timed = now+p.config.Age, true
	time.AfterFunc(p.config.Age, func() { p.returnIdle(timer) })
}

// makeRoom evicts the key that has not been used for the longest time if there is no room for l,
// unless that key is being refilled. It returns the tokens of the evicted key. The caller holds
// p.mu.
func (p *Pool) makeRoom(l *lease) lease {
	if _, listed := p.leases[l.key]; listed {
		return lease{}
	}
	e := p.byUse.Back()
	if e == nil || e.Value.(*lease).refill != nil {
		return lease{}
	}
	return p.evict(e)
}

// evict evicts a key and returns its tokens. The caller holds p.mu.
func (p *Pool) evict(e *list.Element) lease {
	l := e.Value.(*lease)
	p.byUse.Remove(e)
	delete(p.leases, l.key)
	return l.takeAll()
}

// returnIdle evicts the keys that have not been used for Age, and gives their tokens back. It is
// called after Age, until there are no keys. timer is the number of the timer that calls it.
func (p *Pool) returnIdle(timer uint64) {
	p.returning <- struct{}{}
	defer func() { <-p.returning }()
	var idle []lease
	p.mu.Lock()
	now := p.now()
	for e := p.byUse.Back(); e != nil; e = p.byUse.Back() {
		l := e.Value.(*lease)
		other := p.otherClock(l, now)
		if l.refill != nil || !other && now-l.usedAt < p.config.Age {
			break
		}
		if held := p.evict(e); held.held > 0 && !other {
			idle = append(idle, held)
		}
	}
	p.mu.Unlock()
	for _, l := range idle {
		ctx, cancel := context.WithTimeout(context.Background(), p.config.Timeout)
		_ = p.refund(ctx, l) // on an error the tokens are lost
		cancel()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == timer {
		p.timed = false
		p.setTimer(p.now())
	}
}

// awaitRefill waits for the refill of another caller, and then takes n tokens of the lease if it
// holds enough.
func (p *Pool) awaitRefill(ctx context.Context, refill chan struct{}, l *lease, n int) (r limiter.Result, held bool, age time.Duration, err error) {
	select {
	case <-refill:
	case <-ctx.Done():
		return r, false, 0, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.held < n {
		return r, false, 0, nil
	}
	now := p.now()
	return l.handOut(n, now), true, now - l.heldSince, nil
}

// takeFromServer takes n tokens from the server, and some to hold.
func (p *Pool) takeFromServer(ctx context.Context, l *lease, n int) (limiter.Result, error) {
	if extra := p.beginRefill(l, n); extra > 0 {
		r, err := p.refill(ctx, l, n, extra)
		if err != nil || r.OK {
			return r, err
		}
	}
	r, err := p.server.Take(ctx, l.key, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		l.update(r, p.now(), p.config)
		r.Remaining += l.held
	}
	return r, err
}

// beginRefill returns how many tokens to take in addition to n, or 0. Only one caller per key may
// refill at a time; otherwise more than Max tokens could be held. A request for more than Max does
// not refill, because the sum could overflow.
func (p *Pool) beginRefill(l *lease, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.config.Max || l.refill != nil || l.size <= 1 || l.size <= l.held || p.closed {
		return 0
	}
	l.refill = make(chan struct{})
	return l.size - l.held
}

// refill takes n tokens, and extra ones to hold. If the caller leaves because its ctx ends, the
// answer is awaited nevertheless, and all of its tokens are held.
func (p *Pool) refill(ctx context.Context, l *lease, n, extra int) (limiter.Result, error) {
	left := false // under p.mu
	r, err := detach.Do(ctx, func() (limiter.Result, error) {
		due, _ := Deadline(ctx) // the caller's own may be sooner
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), due)
		defer cancel()
		return p.refillToEnd(ctx, l, n, extra, &left)
	})
	if err != nil && ctx.Err() != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		left = true
	}
	return r, err
}

// refillToEnd does the work of refill. Callers that wait for it continue when it ends, even if Take
// panics.
func (p *Pool) refillToEnd(ctx context.Context, l *lease, n, extra int, left *bool) (r limiter.Result, err error) {
	var unlisted lease
	began := p.now()
	defer func() { _ = p.refund(ctx, unlisted) }()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(l.refill)
		l.refill = nil
		if err != nil || !r.OK {
			return
		}
		l.update(r, p.now(), p.config)
		if l.held == 0 {
			l.heldSince = began
		}
		if l.held += extra; *left {
			l.held += n
		}
		r.Remaining += l.held
		if e := p.leases[l.key]; p.closed || e == nil || e.Value != l {
			// no other caller would find the tokens
			unlisted = l.takeAll()
		}
	}()
	return p.server.Take(ctx, l.key, n+extra)
}

// refund gives back the unused tokens of a lease, if there are any.
func (p *Pool) refund(ctx context.Context, l lease) error {
	if l.held == 0 {
		return nil
	}
	return p.server.Refund(ctx, l.key, l.held, p.now()-l.heldSince)
}

func (p *Pool) now() time.Duration { return time.Since(p.epoch) }
