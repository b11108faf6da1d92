package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// unread stands for a time that was not read from the clock yet.
const unread = clock.Unread

func (b *Breaker) now() time.Duration                  { return b.clock.Now() }
func (b *Breaker) at(t time.Time) time.Duration        { return b.clock.At(t) }
func (b *Breaker) peekAt(t time.Time) time.Duration    { return b.clock.Peek(t) }
func (b *Breaker) peekNow() time.Duration              { return b.clock.PeekNow() }
func (b *Breaker) date(at time.Duration) time.Time     { return b.clock.TimeOf(at) }
func (b *Breaker) read(at time.Duration) time.Duration { return b.clock.Read(at) }
