package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/bridge"
)

// It is done before a package that imports this one runs.
var _ = fillBridge()

func fillBridge() bool {
	bridge.Uncounted = func(group any) any { return group.(interface{ uncounted() any }).uncounted() }
	bridge.CopyKeys = func(group, copied any) { group.(interface{ copyKeys(any) }).copyKeys(copied) }
	bridge.Period = periodOf
	bridge.GroupFigures = func(group any) (int64, int, time.Duration) {
		g := group.(interface {
			evictions() int64
			limit() (tokens int, period time.Duration)
		})
		tokens, period := g.limit()
		return g.evictions(), tokens, period
	}
	bridge.TakeAfter = (*TokenBucket).takeAfter
	bridge.TakeBeforeWait = takeBeforeWait
	bridge.ChangeAt = func(bucket any, t time.Time, rate any, burst int) error {
		b := bucket.(*TokenBucket)
		return errors.Join(b.setRate(t.Sub(b.epoch), rate.(Rate)), b.setBurst(t.Sub(b.epoch), burst))
	}
	bridge.PerSecond = func(rate any) float64 { return rate.(Rate).perSecond() }
	bridge.NewQueue = func(s bridge.Server, maxWaiters int) bridge.Queue {
		q := &bridgedQueue{server: bridgedServer{s}}
		q.line.max = maxWaiters
		return q
	}
	return true
}

// bridgedQueue is a queue for a limiter of another package of this module.
type bridgedQueue struct {
	line   queue
	server bridgedServer
}

func (q *bridgedQueue) Wait(ctx context.Context, n int, maxWait time.Duration) error {
	return q.line.wait(ctx, q.server, request{n: n, limit: maxWait})
}

func (q *bridgedQueue) Busy() bool { return q.line.ahead.Load() != 0 }
func (q *bridgedQueue) Poke()      { q.line.poke() }

type bridgedServer struct{ s bridge.Server }

func (b bridgedServer) now() time.Duration { return b.s.Now() }

func (b bridgedServer) serve(r *Result, at time.Duration, n int) {
	r.RetryAfter, r.OK = b.s.Serve(at, n)
}

func (b bridgedServer) after(r *Result, at time.Duration, ahead int64, n int) {
	r.RetryAfter, r.OK = b.s.After(at, ahead, n)
}

func (g *Group[K]) copyKeys(copied any) { g.copied = copied.(func(K) K) }

// bareGroup is a group that counts nothing.
type bareGroup[K comparable] struct{ g *Group[K] }

func (g *Group[K]) uncounted() any { return bareGroup[K]{g} }

func (b bareGroup[K]) TakeAt(t time.Time, key K, n int) (r Result) {
	b.g.take(&r, t.Sub(b.g.epoch), key, n)
	return r
}

// LookAt returns what TakeAt would return, and takes nothing.
func (b bareGroup[K]) LookAt(t time.Time, key K, n int) (r Result) {
	b.g.look(&r, t.Sub(b.g.epoch), key, 0, n)
	return r
}
