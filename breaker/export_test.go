package breaker

import "time"

// What a gate reaches through internal/gatehook.

func (b *Breaker) Admit(m *Permit) error                      { return b.admit(m) }
func (b *Breaker) AdmitAfter(d time.Duration, m *Permit) bool { return b.admitAfter(d, m) }
func (b *Breaker) AdmitAt(t time.Time, m *Permit) error       { return b.admitAt(t, m) }
func (b *Breaker) CheckAt(t time.Time) error                  { return b.checkAt(t) }
func (b *Breaker) Check() error                               { return b.checkAt(time.Now()) }
func (b *Breaker) Refuse(reason string) error                 { return b.refuseFor(reason) }
func (b *Breaker) AfterOpen(f func()) (stop func() bool)      { return b.afterOpen(f) }

// The changes by hand, at a time.

func (b *Breaker) ForceAt(t time.Time, s State)               { b.forceAt(t, s) }
func (b *Breaker) ReleaseAt(t time.Time)                      { b.releaseAt(t) }
func (b *Breaker) OpenForAt(t time.Time, d time.Duration)     { b.openForAt(t, d) }
func (b *Breaker) ResetAt(t time.Time)                        { b.resetAt(t) }
func (b *Breaker) ReconfigureAt(t time.Time, c Config) error  { return b.reconfigureAt(t, c) }
func (b *Breaker) StatsAt(t time.Time) Stats                  { return b.statsAt(t) }
func (g *Group[K]) ReconfigureAt(t time.Time, c Config) error { return g.reconfigureAt(t, c) }
