package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// unread stands for a time that was not read from the clock yet.
const unread = clock.Unread

// Every time enters the breaker through now, at, peekNow, peekAt or read, none of which may be
// called under the lock. If a time is that of a new clock, they restart the breaker first. So the
// phase must be loaded after them.

func (b *Breaker) now() time.Duration { return b.inClock(b.clock.Now(), clock.ReadTolerance) }

func (b *Breaker) peekNow() time.Duration { return b.inClock(b.clock.PeekNow(), clock.ReadTolerance) }

func (b *Breaker) at(t time.Time) time.Duration {
	return b.inClock(b.clock.At(t), clock.GivenTolerance)
}

func (b *Breaker) peekAt(t time.Time) time.Duration {
	return b.inClock(b.clock.Peek(t), clock.GivenTolerance)
}

// justNow is at for a time that the caller has just read from the clock.
func (b *Breaker) justNow(t time.Time) time.Duration {
	return b.inClock(b.clock.At(t), clock.ReadTolerance)
}

func (b *Breaker) read(at time.Duration) time.Duration {
	if at == unread {
		return b.now()
	}
	return at
}

func (b *Breaker) date(at time.Duration) time.Time { return b.clock.TimeOf(at) }

// inClock returns the offset. If its clock is a new one, it restarts the breaker first: see
// clock.IsNew.
func (b *Breaker) inClock(at, tolerance time.Duration) time.Duration {
	if at < b.phase.Load().seen()-clock.ReadTolerance {
		b.restartIfNew(at, tolerance)
	}
	return at
}

// seen returns a time that the phase has seen, if possible the latest.
func (p *phase) seen() time.Duration { return max(p.sampledFrom, p.tally.Latest()) }
