package lease

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Server is who grants permits.
type Server interface {
	// Take takes n permits, all or none. An error says that there is no answer.
	Take(ctx context.Context, key string, n int) (limiter.Result, error)
	// Refund gives back those of n permits, taken so long ago, that still count.
	Refund(ctx context.Context, key string, n int, age time.Duration) error
}

// Config says what a [Purse] holds. All fields must be given.
type Config struct {
	Max  int           // the most permits of a key that are held
	Keys int           // the most keys that are known
	Age  time.Duration // what has not been asked for in this time is given back

	// Timeout is the most that all lasts together for which a Take goes to the server: others' refills that it waits for, what it gives back,
	// and what it asks. When it is over the error is context.DeadlineExceeded, or what the server makes of it.
	Timeout time.Duration
}

// Purse holds the leases of one node. It is made with New and safe for concurrent use; Take and Close block as long
// as the server does.
type Pool struct {
	server Server
	config Config
	epoch  time.Time

	mu     sync.Mutex
	closed bool
	leases map[string]*list.Element // of *lease
	byUse  list.List                // the one asked for last comes first
}

// New returns an empty purse.
func New(s Server, c Config) *Pool {
	return &Pool{server: s, config: c, epoch: time.Now(), leases: map[string]*list.Element{}}
}

// Take takes n permits of the key, all or none: out of the purse, which it reports, or from the server. What it says remains is as of the
// server's last answer, less what was handed out since.
func (p *Pool) Take(ctx context.Context, key string, n int) (r limiter.Result, held bool, err error) {
	if n < 1 {
		r, err = p.server.Take(ctx, key, n)
		return r, false, err
	}
	now := p.now()
	p.mu.Lock()
	l := p.get(key, now)
	if l.held >= n {
		defer p.mu.Unlock()
		return l.handOut(n, now), true, nil
	}
	_, listed := p.leases[key]
	refill, stale := l.refill, p.evictIdle(now, !listed)
	p.mu.Unlock()
	due := time.Now().Add(p.config.Timeout)
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, deadlineKey{}, due), due)
	defer cancel()
	_ = p.refund(ctx, stale) // what is lost is lost
	if refill != nil {
		if r, held, err = p.awaitRefill(ctx, refill, l, n); held || err != nil {
			return r, held, err
		}
	}
	r, err = p.takeFromServer(ctx, l, n)
	return r, false, err
}

// Close gives back all that is held. Afterwards the purse takes no more than it is asked for. The error is the server's; what it
// did not take back is lost.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var all []lease
	for e := p.byUse.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*lease).takeAll())
	}
	p.mu.Unlock()
	var faults []error
	for _, l := range all {
		faults = append(faults, p.refund(ctx, l))
	}
	return errors.Join(faults...)
}

// Forget forgets what is held of the key, and gives nothing back.
func (p *Pool) Forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.leases[key]; known {
		e.Value.(*lease).takeAll()
	}
}

// lookup returns the key's lease; where there is no room for a new key, one that nobody else sees.
func (p *Pool) get(key string, now time.Duration) *lease {
	if e, known := p.leases[key]; known {
		p.byUse.MoveToFront(e)
		l := e.Value.(*lease)
		l.usedAt = now
		return l
	}
	l := &lease{key: strings.Clone(key), size: 1, usedAt: now, answeredAt: now - p.config.Age}
	if len(p.leases) < p.config.Keys {
		p.leases[l.key] = p.byUse.PushFront(l) // a copy: the key may be a part of something large
	}
	return l
}

// glance is how many idle keys are let go at once.
const maxEvictions = 8

// drop lets keys go that have been idle for too long, up to one of which something is held; that it returns. Where there must be
// room for another key the one idle for longest goes, however long that is.
func (p *Pool) evictIdle(now time.Duration, room bool) lease {
	for range maxEvictions {
		e := p.byUse.Back()
		if e == nil {
			break
		}
		l := e.Value.(*lease)
		if l.refill != nil || !room && now-l.usedAt < p.config.Age {
			break
		}
		p.byUse.Remove(e)
		delete(p.leases, l.key)
		room = false
		if held := l.takeAll(); held.held > 0 {
			return held
		}
	}
	return lease{}
}

// await waits for a refill, which may do for this request too.
func (p *Pool) awaitRefill(ctx context.Context, refill chan struct{}, l *lease, n int) (limiter.Result, bool, error) {
	select {
	case <-refill:
	case <-ctx.Done():
		return limiter.Result{}, false, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.held < n {
		return limiter.Result{}, false, nil
	}
	return l.handOut(n, p.now()), true, nil
}

// ask takes n permits from the server, and some to hold.
func (p *Pool) takeFromServer(ctx context.Context, l *lease, n int) (limiter.Result, error) {
	if more := p.beginRefill(l, n); more > 0 {
		r, err := p.refill(ctx, l, n, more)
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

// begin says how many permits to take in advance of a request for n. Only one caller at a time does, or else there might be more in
// hand than the bound says. A request for more than a lease can hold takes none: the sum of both must not wrap around.
func (p *Pool) beginRefill(l *lease, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.config.Max || l.refill != nil || l.size <= 1 || l.size <= l.held || p.closed {
		return 0
	}
	l.refill = make(chan struct{})
	return l.size - l.held
}

// refill takes n permits and more to hold. Those who wait for it look again when it is over, whatever came of it.
func (p *Pool) refill(ctx context.Context, l *lease, n, more int) (r limiter.Result, err error) {
	var spare lease
	began := p.now()
	defer func() { _ = p.refund(ctx, spare) }()
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
		l.held += more
		r.Remaining += l.held
		if e := p.leases[l.key]; p.closed || e == nil || e.Value != l { // nobody would find it
			spare = l.takeAll()
		}
	}()
	return p.server.Take(ctx, l.key, n+more)
}

// giveBack gives back what was held, if anything. What the server does not take back is lost, as if it had been used.
func (p *Pool) refund(ctx context.Context, l lease) error {
	if l.held == 0 {
		return nil
	}
	return p.server.Refund(ctx, l.key, l.held, p.now()-l.heldSince)
}

func (p *Pool) now() time.Duration { return time.Since(p.epoch) }
