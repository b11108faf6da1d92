package fleet

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// lines are the callers who wait, by key.
type waitQueues struct {
	max int // that may wait for one key, 0 for any number

	mu     sync.Mutex
	queues map[string]*list.List // of *place: the first goes first; none is empty
}

// place is a caller's place in a line.
type waiter struct {
	turn    chan struct{} // closed when the caller is the first
	retry   chan struct{} // look again
	queue   *list.List
	element *list.Element // of it
}

// join puts the caller at the end of the line, if there is room.
func (l *waitQueues) join(key string) (*waiter, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.queues[key]
	switch {
	case line == nil:
		line = list.New()
	case l.max > 0 && line.Len() >= l.max:
		return nil, false
	}
	p := &waiter{turn: make(chan struct{}), retry: make(chan struct{}, 1), queue: line}
	if p.element = line.PushBack(p); line.Front() == p.element {
		close(p.turn)
	}
	if l.queues == nil {
		l.queues = map[string]*list.List{}
	}
	l.queues[key] = line
	return p, true
}

// leave takes the caller out of the line, and lets the next go first if the caller did. It takes as long wherever the caller stands.
func (l *waitQueues) leave(key string, p *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := p.queue.Front() == p.element
	p.queue.Remove(p.element)
	switch next := p.queue.Front(); {
	case next == nil:
		delete(l.queues, key)
	case wasFirst:
		close(next.Value.(*waiter).turn)
	}
}

// poke makes the first of the line look again, for there may be more than there was. A caller that asks does not poke itself.
func (l *waitQueues) wakeFirst(key string, caller *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.queues[key]; line != nil {
		line.Front().Value.(*waiter).wake(caller)
	}
}

// pokeAll is poke for all lines.
func (l *waitQueues) wakeEachFirst(caller *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.queues {
		line.Front().Value.(*waiter).wake(caller)
	}
}

func (p *waiter) wake(caller *waiter) {
	if p == caller {
		return
	}
	select {
	case p.retry <- struct{}{}:
	default:
	}
}

// first returns when the caller is the first in line.
func (p *waiter) awaitTurn(ctx context.Context, limit time.Duration) error {
	select {
	case <-p.turn:
		return nil
	default:
		return waitFor(ctx, limit, p.turn, errTurnTooLate)
	}
}

// sleep returns when it is time to look again.
func (p *waiter) sleep(ctx context.Context, d time.Duration) error {
	return waitFor(ctx, d, p.retry, nil)
}

// errTooLong says that it was not the caller's turn within the limit.
var errTurnTooLate = errors.New("fleet: waited too long in line")

// pause waits for a signal, and returns late where there is none in time.
func waitFor(ctx context.Context, d time.Duration, signal <-chan struct{}, late error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-signal:
		return nil
	case <-timer.C:
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}
