package breaker

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/window"
)

// The functions that a gate uses.

func (b *Breaker) Admit(m *Permit) error { return inside{}.Admit(b, m) }

func (b *Breaker) AdmitClosedAt(d time.Duration, m *Permit) bool {
	return inside{}.AdmitClosedAt(b, d, m)
}
func (b *Breaker) AdmitAt(t time.Time, m *Permit) error { return inside{}.AdmitAt(b, t, m) }

// The methods at a given time, which replays use.

func NewAt(name string, c Config, t0 time.Time) *Breaker { return newAt(name, c, t0) }
func (b *Breaker) AllowAt(t time.Time) (Permit, error)   { return inside{}.AllowAt(b, t) }
func (m *Permit) RecordAt(t time.Time, o Outcome) bool   { return inside{}.RecordAt(m, t, o) }
func (b *Breaker) StateAt(t time.Time) State             { return inside{}.StateAt(b, t) }
func (b *Breaker) CountsAt(t time.Time) window.Counts    { return inside{}.CountsAt(b, t) }
func (b *Breaker) CheckAt(t time.Time) error             { return inside{}.CheckAt(b, t) }
func (b *Breaker) Check() error                          { return inside{}.CheckAt(b, time.Now()) }
func (b *Breaker) Refuse(reason string) error            { return inside{}.Refuse(b, reason) }

// AfterOpen calls f when a gate would interrupt a call that waits, because the breaker has opened.
func (b *Breaker) AfterOpen(f func()) (stop func() bool) {
	w := &openWatcher{f}
	inside{}.Watch(b, w)
	return func() bool { return inside{}.Unwatch(b, w) }
}

type openWatcher struct{ f func() }

func (w *openWatcher) Interrupt(c waiting.Cause) {
	if c == waiting.Opened {
		w.f()
	}
}

// Facts returns the exported fields of e, except Margin and LastFailures.
func Facts(e OpenError) OpenError {
	e.cooldown, e.Margin, e.LastFailures = 0, "", nil
	e.began, e.spread = time.Time{}, nil
	return e
}

// The administrative methods at a given time.

func (b *Breaker) ForceAt(t time.Time, s State, reason string) { b.forceAt(t, s, reason) }
func (b *Breaker) ReleaseAt(t time.Time)                       { b.releaseAt(t) }
func (b *Breaker) OpenForAt(t time.Time, d time.Duration)      { b.openForAt(t, d) }
func (b *Breaker) ResetAt(t time.Time)                         { b.resetAt(t) }
func (b *Breaker) ReconfigureAt(t time.Time, c Config) error   { return b.reconfigureAt(t, c) }

// ReconfigureAt replaces the Config of all breakers of a group, and keeps its MaxOpen.
func (g *Group[K]) ReconfigureAt(t time.Time, c Config) error {
	share := float64(g.places.share.Load()) / float64(wholeRate)
	return g.reconfigureAt(t, GroupConfig{Breaker: c, MaxKeys: g.maxKeys, MaxSeries: valueOr(g.maxSeries, Off, Off), MaxOpen: share})
}

// Sampled reports whether calls are timed for the usual duration.
func (b *Breaker) Sampled() bool { return b.regime.Load().sample != nil }

// AllStats is the state of a breaker at one time.
type AllStats struct {
	State              State
	Since              time.Time // when the state began
	Counts             window.Counts
	Totals             window.Totals
	Active             int64 // calls in flight
	Late               int64 // results of calls that an earlier state had let through
	Abandoned, Dropped int64
	ShadowOpened       int64
	ShadowRefused      int64
}

func (b *Breaker) StatsNow() AllStats { return b.allStats(b.peekNow()) }

func (b *Breaker) StatsAt(t time.Time) AllStats { return b.allStats(b.peekAt(t)) }

func (b *Breaker) allStats(at time.Duration) AllStats {
	opened, refused := b.ShadowTotals()
	return AllStats{
		State: b.stateAt(at), Since: b.date(b.regime.Load().stayAt(at).since), Counts: b.counts(at), Totals: b.Totals(),
		Active: b.active.Load(), Late: b.rareSoFar().late.Load(), Abandoned: b.rareSoFar().abandoned.Load(), Dropped: b.rareSoFar().changes.dropped.Load(),
		ShadowOpened: opened, ShadowRefused: refused,
	}
}

func (c Change) Seq() uint64    { return c.seq }
func (c Change) Origin() string { return c.origin }
func (c Change) String() string { return fmt.Sprintf("%s to %s: %s", c.From, c.To, c.Reason) }

// WithoutContext returns c without the context of a call.
func (c Change) WithoutContext() Change {
	c.ctx = nil
	return c
}

// WithSeq returns c with a different number.
func (c Change) WithSeq(n uint64) Change {
	c.seq = n
	return c
}

// WithOrigin returns c with a different origin.
func (c Change) WithOrigin(origin string) Change {
	c.origin = origin
	return c
}

// LastSeq is the number of the latest change.
func (b *Breaker) LastSeq() uint64 {
	q := b.changes()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seq
}

// Stay returns the number of the present stay, and whether the state is HalfOpen.
func (b *Breaker) Stay() (epoch uint64, half bool) {
	p := b.regime.Load()
	return p.generation, p.state == HalfOpen
}

// Groups at a given time, and their totals.

func NewGroupAt[K comparable](name string, c GroupConfig, t0 time.Time) *Group[K] {
	return newGroupAt[K](name, c, t0)
}

func (g *Group[K]) GetAt(t time.Time, key K) *Breaker { return g.getAt(t, key) }

type GroupStats struct {
	Members   int   // keys, as Len returns
	Evictions int64 // keys that were evicted to make room
	Unguarded int64 // times that Get found no room
}

func (g *Group[K]) Stats() GroupStats {
	return GroupStats{Members: g.Len(), Evictions: g.members.Evictions(), Unguarded: g.unguardedCalls.Load()}
}

// KeptFailures returns the failures that an opening now would show.
func (b *Breaker) KeptFailures() []FailedCall { return b.newDetails("").failures }

// The administrative methods of a group.

func (g *Group[K]) ForceAll(s State) {
	_, _ = groupView[K]{g}.Set("", stateSetting(override{state: s})...)
}
func (g *Group[K]) ReleaseAll() { g.ForceAll("") }
func (g *Group[K]) ResetAll()   { _ = groupView[K]{g}.Reset(context.Background(), "") }
