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
