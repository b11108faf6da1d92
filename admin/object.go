package admin

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat/view"
)

// object is what a request acts on: a view, or a source that has some of its methods. A function
// that does not apply is nil.
type object struct {
	Kind, Name string
	Source     any // what the object was found in, or nil

	State   func() string
	Tripped func() bool
	Explain func() string
	Bound   func() (calls, now, configured int)
	Busiest func(n int) []limiter.BusyKey
	Reset   func(ctx context.Context, why string) error
	Hold    func(d time.Duration)
	tunable view.Tunable // nil if there are no settings
	// PerMember says that the override is that of the first member, and has to be set for each.
	PerMember bool
	Monitor   *alert.Monitor

	// Members yields the members of a group by the texts of their keys.
	Members iter.Seq2[string, object]
	// Keyed returns the object of a key that Members does not yield, or false if the text does not
	// stand for a key. If Members is nil, the objects of all keys support the same verbs.
	Keyed func(key string) (o object, ok bool)
}

// newObject returns the object of a view.
func newObject(v view.View) object {
	o := object{Kind: v.Kind(), Name: v.Name()}
	if s, ok := v.(view.Stateful); ok {
		o.State, o.Tripped, o.Explain = s.State, s.Tripped, s.Explain
	}
	if s, ok := v.(view.Bounded); ok {
		o.Bound = s.Bound
	}
	if s, ok := v.(refuser); ok {
		o.Busiest = s.Busiest
	}
	if s, ok := v.(view.Resetter); ok {
		o.Reset = s.Reset
	}
	if s, ok := v.(view.Holder); ok {
		o.Hold = s.Hold
	}
	o.tunable, _ = v.(view.Tunable)
	if s, ok := v.(view.Group); ok {
		o.Members = func(yield func(string, object) bool) {
			for key, m := range s.Members() {
				if !yield(key, newObject(m)) {
					return
				}
			}
		}
	}
	if s, ok := v.(view.Keyed); ok {
		o.Keyed = func(key string) (m object, ok bool) {
			one, ok := s.Key(key)
			if ok {
				m = newObject(one)
			}
			return m, ok
		}
	}
	return o
}

// The parts of the settings of an object that are set separately.
const (
	partState    = "state"
	partRate     = "rate"
	partSlots    = "slots"
	partQuota    = "quota"
	partThrottle = "throttle"
)

// partNames are the names of the settings of each part.
var partNames = map[string][]string{
	partState: {"state"}, partRate: {"rate", "burst"}, partSlots: {"max_concurrent"}, partQuota: {"limit"}, partThrottle: {"k", "max_refusal"},
}

// settings returns the settings of the object now.
func (o *object) settings() []view.Setting {
	if o.tunable == nil {
		return nil
	}
	return settingsOf(o.tunable)
}

// partOf returns those of the settings that belong to a part.
func partOf(s []view.Setting, part string) (of []view.Setting) {
	for _, one := range s {
		if slices.Contains(partNames[part], one.Name) {
			of = append(of, one)
		}
	}
	return of
}

// valueOf returns the value of the setting with the name, or "".
func valueOf(s []view.Setting, name string) string {
	for _, one := range s {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// override returns the override of an object.
func (o *object) override() string { return valueOf(o.settings(), "state") }

// state returns the state of an object, or its override if it has no other state.
func (o *object) state() string {
	if o.State == nil {
		return o.override()
	}
	return o.State()
}

func hasSetting(s []view.Setting, name string) bool {
	return slices.ContainsFunc(s, func(one view.Setting) bool { return one.Name == name })
}
