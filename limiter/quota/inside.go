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
	r, _ := i.k.group.take(i.k.key, t, n)
	return r
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
