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
type Purse struct {
	server Server
	config Config
	epoch  time.Time

	mu     sync.Mutex
	closed bool
	keys   map[string]*list.Element // of *lease
	used   list.List                // the one asked for last comes first
}

// New returns an empty purse.
func New(s Server, c Config) *Purse {
	return &Purse{server: s, config: c, epoch: time.Now(), keys: map[string]*list.Element{}}
}

// Take takes n permits of the key, all or none: out of the purse, which it reports, or from the server. What it says remains is as of the
// server's last answer, less what was handed out since.
func (p *Purse) Take(ctx context.Context, key string, n int) (r limiter.Result, held bool, err error) {
	if n < 1 {
		r, err = p.server.Take(ctx, key, n)
		return r, false, err
	}
	now := p.now()
	p.mu.Lock()
	l := p.lookup(key, now)
	if l.left >= n {
		defer p.mu.Unlock()
		return l.hand(n, now), true, nil
	}
	_, listed := p.keys[key]
	refill, stale := l.refill, p.drop(now, !listed)
	p.mu.Unlock()
	due := time.Now().Add(p.config.Timeout)
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, dueKey{}, due), due)
	defer cancel()
	_ = p.giveBack(ctx, stale) // what is lost is lost
	if refill != nil {
		if r, held, err = p.await(ctx, refill, l, n); held || err != nil {
			return r, held, err
		}
	}
	r, err = p.ask(ctx, l, n)
	return r, false, err
}

// Close gives back all that is held. Afterwards the purse takes no more than it is asked for. The error is the server's; what it
// did not take back is lost.
func (p *Purse) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var all []lease
	for e := p.used.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*lease).empty())
	}
	p.mu.Unlock()
	var faults []error
	for _, l := range all {
		faults = append(faults, p.giveBack(ctx, l))
	}
	return errors.Join(faults...)
}

// Forget forgets what is held of the key, and gives nothing back.
func (p *Purse) Forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.keys[key]; known {
		e.Value.(*lease).empty()
	}
}

// lookup returns the key's lease; where there is no room for a new key, one that nobody else sees.
func (p *Purse) lookup(key string, now time.Duration) *lease {
	if e, known := p.keys[key]; known {
		p.used.MoveToFront(e)
		l := e.Value.(*lease)
		l.used = now
		return l
	}
	l := &lease{key: strings.Clone(key), size: 1, used: now, asked: now - p.config.Age}
	if len(p.keys) < p.config.Keys {
		p.keys[l.key] = p.used.PushFront(l) // a copy: the key may be a part of something large
	}
	return l
}

// glance is how many idle keys are let go at once.
const glance = 8

// drop lets keys go that have been idle for too long, up to one of which something is held; that it returns. Where there must be
// room for another key the one idle for longest goes, however long that is.
func (p *Purse) drop(now time.Duration, room bool) lease {
	for range glance {
		e := p.used.Back()
		if e == nil {
			break
		}
		l := e.Value.(*lease)
		if l.refill != nil || !room && now-l.used < p.config.Age {
			break
		}
		p.used.Remove(e)
		delete(p.keys, l.key)
		room = false
		if held := l.empty(); held.left > 0 {
			return held
		}
	}
	return lease{}
}

// await waits for a refill, which may do for this request too.
func (p *Purse) await(ctx context.Context, refill chan struct{}, l *lease, n int) (limiter.Result, bool, error) {
	select {
	case <-refill:
	case <-ctx.Done():
		return limiter.Result{}, false, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.left < n {
		return limiter.Result{}, false, nil
	}
	return l.hand(n, p.now()), true, nil
}

// ask takes n permits from the server, and some to hold.
func (p *Purse) ask(ctx context.Context, l *lease, n int) (limiter.Result, error) {
	if more := p.begin(l, n); more > 0 {
		r, err := p.refill(ctx, l, n, more)
		if err != nil || r.OK {
			return r, err
		}
	}
	r, err := p.server.Take(ctx, l.key, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		l.learn(r, p.now(), p.config)
		r.Remaining += l.left
	}
	return r, err
}

// begin says how many permits to take in advance of a request for n. Only one caller at a time does, or else there might be more in
// hand than the bound says. A request for more than a lease can hold takes none: the sum of both must not wrap around.
func (p *Purse) begin(l *lease, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.config.Max || l.refill != nil || l.size <= 1 || l.size <= l.left || p.closed {
		return 0
	}
	l.refill = make(chan struct{})
	return l.size - l.left
}

// refill takes n permits and more to hold. Those who wait for it look again when it is over, whatever came of it.
func (p *Purse) refill(ctx context.Context, l *lease, n, more int) (r limiter.Result, err error) {
	var spare lease
	began := p.now()
	defer func() { _ = p.giveBack(ctx, spare) }()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(l.refill)
		l.refill = nil
		if err != nil || !r.OK {
			return
		}
		l.learn(r, p.now(), p.config)
		if l.left == 0 {
			l.since = began
		}
		l.left += more
		r.Remaining += l.left
		if e := p.keys[l.key]; p.closed || e == nil || e.Value != l { // nobody would find it
			spare = l.empty()
		}
	}()
	return p.server.Take(ctx, l.key, n+more)
}

// giveBack gives back what was held, if anything. What the server does not take back is lost, as if it had been used.
func (p *Purse) giveBack(ctx context.Context, l lease) error {
	if l.left == 0 {
		return nil
	}
	return p.server.Refund(ctx, l.key, l.left, p.now()-l.since)
}

func (p *Purse) now() time.Duration { return time.Since(p.epoch) }
