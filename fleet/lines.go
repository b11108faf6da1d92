package fleet

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lines are the callers who wait, by key.
type lines struct {
	max int // that may wait for one key, 0 for any number

	mu    sync.Mutex
	byKey map[string][]*place // the first goes first; none is empty
}

// place is a caller's place in a line.
type place struct {
	turn chan struct{} // closed when the caller is the first
	wake chan struct{} // look again
}

// join puts the caller at the end of the line, if there is room.
func (l *lines) join(key string) (*place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[key]
	if l.max > 0 && len(line) >= l.max {
		return nil, false
	}
	p := &place{turn: make(chan struct{}), wake: make(chan struct{}, 1)}
	if len(line) == 0 {
		close(p.turn)
	}
	if l.byKey == nil {
		l.byKey = map[string][]*place{}
	}
	l.byKey[key] = append(line, p)
	return p, true
}

// leave takes the caller out of the line.
func (l *lines) leave(key string, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[key]
	for i, other := range line {
		if other != p {
			continue
		}
		line = append(line[:i], line[i+1:]...)
		if i == 0 && len(line) > 0 {
			close(line[0].turn)
		}
		break
	}
	if l.byKey[key] = line; len(line) == 0 {
		delete(l.byKey, key)
	}
}

// poke makes the first of the line look again, for there may be more than there was.
func (l *lines) poke(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.byKey[key]; len(line) > 0 {
		select {
		case line[0].wake <- struct{}{}:
		default:
		}
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
