package fleet

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// lines are the callers who wait, by key.
type lines struct {
	max int // that may wait for one key, 0 for any number

	mu    sync.Mutex
	byKey map[string]*list.List // of *place: the first goes first; none is empty
}

// place is a caller's place in a line.
type place struct {
	turn chan struct{} // closed when the caller is the first
	wake chan struct{} // look again
	line *list.List
	at   *list.Element // of it
}

// join puts the caller at the end of the line, if there is room.
func (l *lines) join(key string) (*place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[key]
	switch {
	case line == nil:
		line = list.New()
	case l.max > 0 && line.Len() >= l.max:
		return nil, false
	}
	p := &place{turn: make(chan struct{}), wake: make(chan struct{}, 1), line: line}
	if p.at = line.PushBack(p); line.Front() == p.at {
		close(p.turn)
	}
	if l.byKey == nil {
		l.byKey = map[string]*list.List{}
	}
	l.byKey[key] = line
	return p, true
}

// leave takes the caller out of the line, and lets the next go first if the caller did. It takes as long wherever the caller stands.
func (l *lines) leave(key string, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := p.line.Front() == p.at
	p.line.Remove(p.at)
	switch next := p.line.Front(); {
	case next == nil:
		delete(l.byKey, key)
	case wasFirst:
		close(next.Value.(*place).turn)
	}
}

// poke makes the first of the line look again, for there may be more than there was. A caller that asks does not poke itself.
func (l *lines) poke(key string, caller *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.byKey[key]; line != nil {
		line.Front().Value.(*place).poke(caller)
	}
}

// pokeAll is poke for all lines.
func (l *lines) pokeAll(caller *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.byKey {
		line.Front().Value.(*place).poke(caller)
	}
}

func (p *place) poke(caller *place) {
	if p == caller {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// first returns when the caller is the first in line.
func (p *place) first(ctx context.Context, limit time.Duration) error {
	select {
	case <-p.turn:
		return nil
	default:
		return pause(ctx, limit, p.turn, errTooLong)
	}
}

// sleep returns when it is time to look again.
func (p *place) sleep(ctx context.Context, d time.Duration) error { return pause(ctx, d, p.wake, nil) }

// errTooLong says that it was not the caller's turn within the limit.
var errTooLong = errors.New("fleet: waited too long in line")

// pause waits for a signal, and returns late where there is none in time.
func pause(ctx context.Context, d time.Duration, signal <-chan struct{}, late error) error {
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
