package clock_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/clock"
)

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// plainClock does what Clock does, but keeps all times that were given.
type plainClock struct {
	given []time.Time
}

func (p *plainClock) origin() time.Time {
	for _, t := range p.given {
		switch d := t.Sub(epoch); {
		case d < -clock.MaxOffset: // stale
		case d < 0 || d > clock.MaxOffset:
			return t
		default:
			return epoch
		}
	}
	return epoch
}

func (p *plainClock) offset(t time.Time) time.Duration {
	return min(max(t.Sub(p.origin()), -clock.MaxOffset), clock.MaxOffset)
}

// randomTime returns a time near the epoch, far from it, or beyond what an offset can express.
func randomTime(r *rand.Rand) time.Time {
	switch r.IntN(8) {
	case 0:
		return time.Time{}
	case 1:
		return epoch.Add(-clock.MaxOffset).Add(-time.Duration(r.IntN(3)))
	case 2:
		return epoch.Add(clock.MaxOffset).Add(time.Duration(r.IntN(3)))
	case 3:
		return epoch.AddDate(r.IntN(600)-300, 0, 0)
	default:
		return epoch.Add(time.Duration(r.IntN(2001)-1000) * time.Second)
	}
}

// TestOffsetsEqualThoseOfAPlainClock gives random times to a clock and to a plain one.
func TestOffsetsEqualThoseOfAPlainClock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c, plain := &clock.Clock{Epoch: epoch}, &plainClock{}
		for range 4 {
			at := randomTime(r)
			require.Equal(t, plain.offset(at), c.Peek(at), "Peek(%v) after %v", at, plain.given)
			switch r.IntN(3) {
			case 0:
				plain.given = append(plain.given, at)
				require.Equal(t, plain.offset(at), c.At(at), "At(%v) after %v", at, plain.given)
			case 1:
				d := max(at.Sub(epoch), -clock.MaxOffset)
				plain.given = append(plain.given, epoch.Add(d))
				require.Equal(t, plain.origin().Equal(epoch), c.IsOffset(d), "IsOffset(%v) after %v", d, plain.given)
			}
			require.True(t, c.TimeOf(0).Equal(plain.origin()), "origin after %v", plain.given)
			require.Equal(t, time.Minute, c.Peek(c.TimeOf(time.Minute)))
		}
	}
}

func TestStartsAtEpochOnceATimeIsGiven(t *testing.T) {
	c := &clock.Clock{Epoch: epoch}
	require.False(t, c.StartsAtEpoch())
	c.Peek(epoch.Add(time.Second))
	require.False(t, c.StartsAtEpoch(), "Peek does not choose the origin")
	c.At(time.Time{})
	require.False(t, c.StartsAtEpoch(), "the zero time does not choose the origin")
	c.At(epoch.Add(time.Second))
	require.True(t, c.StartsAtEpoch())
	c.At(epoch.Add(-time.Second))
	require.True(t, c.StartsAtEpoch(), "the origin is chosen once")
}

// TestNowInABubbleThatBeganBeforeTheOwner uses a package variable on the clock of a synctest
// bubble, which begins in the year 2000.
func TestNowInABubbleThatBeganBeforeTheOwner(t *testing.T) {
	c := &clock.Clock{Epoch: time.Now()}
	synctest.Test(t, func(t *testing.T) {
		require.Negative(t, c.PeekNow())
		require.Zero(t, c.Now(), "the first time is the origin")
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, c.Now())
		require.Equal(t, time.Minute, c.PeekNow())
		require.Equal(t, time.Minute, c.Read(clock.Unread))
		require.Equal(t, time.Hour, c.Read(time.Hour))
	})
}

func TestChoosingEpochAllocatesNothing(t *testing.T) {
	clocks := make([]clock.Clock, 101)
	next := 0
	require.Zero(t, testing.AllocsPerRun(len(clocks)-1, func() {
		c := &clocks[next]
		next++
		c.Epoch = epoch
		c.At(epoch)
		c.Now()
	}))
}
