package quota

import (
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
)

// Inside returns functions of quotas for the other packages of the module. Users cannot name the
// key.
func (k Keyed) Inside(friend.Key) friend.Limiter[limiter.Result] { return insideKeyed{k} }

// insideKeyed is a quota as gates and limiter.NewJoint see it.
type insideKeyed struct{ k Keyed }

func (i insideKeyed) PeekAt(t time.Time, ahead int64, n int) limiter.Result {
	r, _ := i.k.group.peek(i.k.key, t, ahead, n)
	return r
}

func (i insideKeyed) TakeAt(t time.Time, n int) limiter.Result {
	return i.k.group.takeAndWarn(i.k.key, t, n)
}

func (i insideKeyed) Record(r limiter.Result, n int) limiter.Result {
	return i.k.group.record(i.k.key, r, n)
}

func (i insideKeyed) IsShadow() bool { return i.k.group.shadow }
func (i insideKeyed) MaxKeys() int   { return i.k.group.counts.maxKeys }

func (i insideKeyed) IsItself(l any) bool {
	switch l.(type) {
	case Keyed, *Keyed:
		return true
	}
	return false
}

// Inside returns functions of a period for the other packages of the module. Users cannot name the
// key.
func (p Period) Inside(friend.Key) insidePeriod { return insidePeriod{p} } //nolint:revive // only its method is needed

// insidePeriod has a function of a period for package fleet.
type insidePeriod struct{ every Period }

// At returns the period of the zone that contains t.
func (i insidePeriod) At(t time.Time, zone *time.Location) (start, end time.Time) {
	s := calendar{every: i.every, zone: zone}.at(t)
	return s.start, s.end
}

// Inside returns functions of a group for the other packages of the module. Users cannot name the
// key.
func (g *Group) Inside(friend.Key) insideGroup { return insideGroup{g} } //nolint:revive // only its methods are needed

// insideGroup has functions of a group for package weirhttp.
type insideGroup struct{ g *Group }

// Take is Keyed.Take, except that it does not log that there is no room for the key. It also
// returns the period.
func (i insideGroup) Take(key string, n int) (r limiter.Result, start, end time.Time) {
	r, period := i.g.take(key, time.Time{}, n)
	return i.g.record(key, r, n), period.start, period.end
}

// Peek returns whether Take would take the tokens, and what is left now. It takes and counts
// nothing, and does not know shadow mode.
func (i insideGroup) Peek(key string, n int) (r limiter.Result, start, end time.Time) {
	r, period := i.g.peek(key, time.Time{}, 0, n)
	return r, period.start, period.end
}

// Charge charges a key, and reports whether there is room for it.
func (i insideGroup) Charge(key string, n int) (room bool) { return i.g.charge(key, n, false) }

// ForgetAll is Forget of all keys.
func (i insideGroup) ForgetAll() {
	i.g.mu.Lock()
	i.g.counts.forgetAll()
	i.g.mu.Unlock()
	i.g.write(writing{soon: true})
}

func (i insideGroup) IsShadow() bool { return i.g.shadow }
func (i insideGroup) MaxKeys() int   { return i.g.counts.maxKeys }
