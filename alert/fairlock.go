package alert

import (
	"context"
	"slices"
	"sync"
)

// fairLock is a lock whose callers get it in the order in which they came, unless their contexts
// end before. Each caller that waits makes a channel: a channel that the lock kept could not be
// used outside of the testing/synctest bubble that it was made in. The zero value is unlocked.
type fairLock struct {
	mu      sync.Mutex
	locked  bool
	waiting []chan struct{} // closed when its caller has the lock
}

// lock returns nil when the caller has the lock, or the error of ctx.
func (l *fairLock) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if !l.locked {
		l.locked = true
		l.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	l.waiting = append(l.waiting, mine)
	l.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.waiting, mine)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // the lock came at the same time
		l.unlock()
	}
	return ctx.Err()
}

func (l *fairLock) unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked = len(l.waiting) > 0; l.locked {
		close(l.waiting[0])
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
}
