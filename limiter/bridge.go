package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/report"
)

// The bridge is filled before a package that imports this one is initialized.
var _ = fillBridge()

func fillBridge() bool {
	bridge.Uncounted = func(group any) any { return group.(interface{ uncounted() any }).uncounted() }
	bridge.CopyKeys = func(group, copied any) { group.(interface{ setCopyKey(any) }).setCopyKey(copied) }
	bridge.Describe = func(l any) bridge.Limits {
		return bridge.Limits{Period: periodOf(l), MaxKeys: maxKeysOf(l)}
	}
	bridge.Interval = intervalOf
	bridge.NameMaxWait = func(e any, maxWait time.Duration) { e.(*LimitedError).wait = maxWait }
	bridge.Spread = func(e any, p *places.Places) { e.(*LimitedError).places = p }
	bridge.GroupFigures = func(group any) (int64, int64, int, time.Duration) {
		g := group.(interface {
			evictions() int64
			withoutRoom() int64
			limit() (tokens int, period time.Duration)
		})
		tokens, period := g.limit()
		return g.evictions(), g.withoutRoom(), tokens, period
	}
	bridge.TakeFast = (*TokenBucket).takeFast
	bridge.Reserve = reserve
	bridge.NewWaiter, bridge.WaitReserve = newGateWaiter, waitForGate
	bridge.Renew = func(l Limiter, t time.Time, n int) (r Reservation) {
		m := asMember(l)
		if r.Result, r.taken = m.tryTake(t, n, nothing); r.taken.n > 0 {
			r.owner = m
		}
		r.OK = r.OK || m.isShadow()
		return r
	}
	bridge.Taken = func(b *TokenBucket, at time.Duration, n int) Reservation {
		return Reservation{owner: b, taken: b.takenAt(b.epoch.Add(at), n)}
	}
	bridge.SetLimits = (*TokenBucket).setLimits
	bridge.PerSecond = func(rate any) float64 { return rate.(Rate).perSecond() }
	bridge.NewQueue = func(s bridge.Source, maxWaiters int) bridge.Queue {
		q := &bridgeQueue{source: bridgeSource{s}}
		q.queue.maxWaiters = maxWaiters
		return q
	}
	report.Limiters = reportLimiter
	fillReplays()
	return true
}

// fillReplays sets the functions that take a time.
func fillReplays() {
	bridge.ChangeAt = func(bucket any, t time.Time, rate any, burst int) error {
		b := bucket.(*TokenBucket)
		return errors.Join(b.setRateAt(t.Sub(b.epoch), rate.(Rate)), b.setBurstAt(t.Sub(b.epoch), burst))
	}
	bridge.TokensAt = func(bucket any, t time.Time) float64 {
		b := bucket.(*TokenBucket)
		return b.tokensAt(t.Sub(b.epoch))
	}
	bridge.ReserveAt = func(bucket any, t time.Time, n int, maxWait time.Duration) any {
		b := bucket.(*TokenBucket)
		return b.reserveAt(t.Sub(b.epoch), n, maxWait)
	}
	bridge.CancelAt = func(reservation any, t time.Time) bool {
		r := reservation.(*Reservation)
		return r.OK && r.cancelAt(t.Sub(r.bucket.epoch))
	}
}

// bridgeQueue is a waitQueue for a limiter of another package of this module.
type bridgeQueue struct {
	queue  waitQueue
	source bridgeSource
}

func (q *bridgeQueue) Wait(ctx context.Context, n int, maxWait time.Duration) error {
	_, err := q.queue.wait(ctx, q.source, n, maxWait, nil)
	return err
}

func (q *bridgeQueue) HasWaiters() bool { return q.queue.waitingTokens.Load() != 0 }
func (q *bridgeQueue) WakeFirst()       { q.queue.wakeFirst() }

type bridgeSource struct{ source bridge.Source }

func (s bridgeSource) acquire(n int) (r Result, _ taken) {
	r.RetryAfter, r.OK = s.source.Acquire(n)
	return r, taken{}
}

func (s bridgeSource) predict(ahead int64, n int) (r Result) {
	r.RetryAfter, r.OK = s.source.Predict(ahead, n)
	return r
}

func (g *Group[K]) setCopyKey(copied any) { g.copyKey = copied.(func(K) K) }

// uncountedGroup is a group whose methods count nothing in the statistics.
type uncountedGroup[K comparable] struct{ group *Group[K] }

func (g *Group[K]) uncounted() any { return uncountedGroup[K]{g} }

func (u uncountedGroup[K]) TakeAt(t time.Time, key K, n int) (r Result) {
	u.group.take(&r, nil, t.Sub(u.group.epoch), clock.GivenTolerance, key, n)
	return r
}

func (u uncountedGroup[K]) PutBackAt(t, taken time.Time, key K, n int) {
	if k := u.group.Get(key); n > 0 && !k.isShadow() {
		k.putBack(t, k.takenAt(taken, n), n)
	}
}

func (u uncountedGroup[K]) LookAt(t time.Time, key K, n int) Result {
	k := u.group.Get(key)
	r := k.peek(t, 0, n)
	if !r.OK && k.restartIfNew(t, clock.ReadTolerance) {
		r = k.peek(t, 0, n)
	}
	return r
}

// Package admin uses limiters through this function.
var _ = func() bool {
	adminhook.OfLimiter = func(source any) (o adminhook.Object, ok bool) {
		switch s := source.(type) {
		case interface{ adminObject() adminhook.Object }:
			return s.adminObject(), true
		case interface {
			Limiter
			Name() string
		}:
			o = adminhook.Object{Kind: "limiter", Name: s.Name()}
			if h, ok := s.(interface{ Hold(d time.Duration) }); ok {
				o.Hold = h.Hold
			}
			return o, true
		}
		return o, false
	}
	return true
}()

func (b *TokenBucket) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "limiter", Name: b.Name(), Hold: b.Hold,
		Limits: b.adminLimits(),
	}
}

func (b *TokenBucket) adminLimits() *adminhook.Setting {
	set := func(v adminhook.Value, condition func(*bucketState) bool) bool {
		l := v.V.(adminhook.Limits)
		return b.setLimitsIf(l.Rate.(Rate), l.Burst, v.Number, condition)
	}
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			b.mu.Lock()
			defer b.mu.Unlock()
			s := b.state.Load()
			return adminhook.Value{V: adminhook.Limits{Rate: s.rate, Burst: s.configuredBurst}, Number: s.set}
		},
		Set: func(v any, _ string) adminhook.Value {
			next := adminhook.Value{V: v, Number: adminhook.NextNumber()}
			set(next, func(*bucketState) bool { return true })
			return next
		},
		Restore: func(now, earlier adminhook.Value, _ string) bool {
			return set(earlier, func(old *bucketState) bool { return old.set == now.Number })
		},
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	return adminhook.Object{
		Kind: "limiter_group", Name: g.Name(), Busiest: func(n int) any { return g.Busiest(n) }, Hold: g.holdAll,
		Reset: func(context.Context, string) error {
			g.forgetAll()
			return nil
		},
		Limits: g.set.Setting(func() any {
			t := g.first.Load()
			return adminhook.Limits{Rate: t.Rate, Burst: t.Burst}
		}, func(v any) {
			l := v.(adminhook.Limits)
			g.setTier(time.Since(g.epoch), 0, Tier{Rate: l.Rate.(Rate), Burst: l.Burst})
		}),
		Members: func(yield func(string, adminhook.Object) bool) {
			for key := range g.All() {
				if !yield(keytext.Label(key), g.keyObject(key)) {
					return
				}
			}
		},
		Keyed: func(text string) (o adminhook.Object, ok bool) {
			key, ok := any(text).(K)
			return g.keyObject(key), ok
		},
	}
}

func (g *Group[K]) keyObject(key K) adminhook.Object {
	return adminhook.Object{
		Kind: "limiter", Name: g.Name(), Hold: g.Get(key).Hold,
		Reset: func(context.Context, string) error {
			g.Forget(key)
			return nil
		},
	}
}
