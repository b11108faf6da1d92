package admin

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// The verbs that sources of other modules, such as package fleet, and sources of users can have.
// Each method is one verb.
type (
	named         interface{ Name() string }
	breakersOwner interface {
		Breakers() iter.Seq2[string, *breaker.Breaker]
	}
	holder      interface{ Hold(d time.Duration) }
	keyResetter interface {
		Reset(ctx context.Context, key string) error
	}
	refuser interface {
		Busiest(n int) []limiter.BusyKey
	}
)

// The kinds of these sources.
const (
	kindLink  = "link"  // has breakers
	kindOther = "other" // has none

	kindMonitor = "monitor"
)

// foreignObject returns the object of a source with a name and at least one of the verbs.
func foreignObject(s stat.Source) (o object, ok bool) {
	n, ok := s.(named)
	if !ok {
		return o, false
	}
	if l, ok := s.(limiter.Limiter); ok {
		o = object{Kind: "limiter", Name: n.Name()}
		if h, ok := l.(holder); ok {
			o.Hold = h.Hold
		}
		return o, true
	}
	o = object{Kind: kindOther, Name: n.Name()}
	known := false
	if s, ok := s.(holder); ok {
		o.Hold, known = s.Hold, true
	}
	if s, ok := s.(keyResetter); ok {
		o.Keyed, known = resetOfKeys(s, o.Name), true
	}
	if s, ok := s.(refuser); ok {
		o.Busiest, known = s.Busiest, true
	}
	if s, ok := s.(breakersOwner); ok {
		addBreakers(&o, s)
		o.Kind, known = kindLink, true
	}
	return o, known
}

func resetOfKeys(s keyResetter, name string) func(key string) (object, bool) {
	return func(key string) (object, bool) {
		return object{Name: name, Reset: func(ctx context.Context, _ string) error { return s.Reset(ctx, key) }}, true
	}
}

// addBreakers makes the breakers members of the object. The state of the object is the override of
// the first breaker.
func addBreakers(o *object, s breakersOwner) {
	o.Members = func(yield func(string, object) bool) {
		for key, b := range s.Breakers() {
			for v := range b.Views {
				if !yield(key, newObject(v)) {
					return
				}
			}
		}
	}
	members := o.Members
	o.PerMember = true
	o.State = func() string {
		for _, m := range members {
			return m.override()
		}
		return ""
	}
	o.Reset = func(ctx context.Context, why string) (err error) {
		for _, m := range members {
			err = errors.Join(err, m.Reset(ctx, why))
		}
		return err
	}
}
