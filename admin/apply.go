package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/adminhook"
)

// apply does the action that the request asks for. The caller holds t.busy, or t.testing for a test
// message. t.busy is held also while the OnChange of a breaker is called, so the actions on an
// object take effect in the order of its history.
func (t *target) apply(h *Handler, o *adminhook.Object, r *request) (entry, error) {
	v := &r.body
	e := entry{Verb: r.action.Verb, User: r.user, Reason: v.reason, For: durationText(v.duration)}
	why := "by " + r.user
	if v.reason != "" {
		why += ": " + v.reason
	}
	verbs := actionsOf(o)
	if !slices.Contains(verbs, r.action.Verb) {
		return e, unsupported(o, r, verbs)
	}
	switch r.action.Verb {
	case verbForce, verbDrain, verbRelease:
		if r.action.Verb == verbDrain {
			v.state = breaker.ForcedOpen
		}
		e.Before = cmp.Or(o.State(), noOverride) // a group has no other state
		t.override.begin(h, t, overrideProperty(o), string(v.state), why, v.duration)
		e.After = cmp.Or(o.State(), noOverride)
	case verbReset:
		if err := o.Reset(r.Context(), why); err != nil {
			return e, replyErrorf(http.StatusBadGateway, "the reset failed: %.300v", err)
		}
	case verbHold:
		o.Hold(v.duration)
		t.heldUntil(h, time.Now().Add(v.duration))
	case verbLimits:
		err := t.changeLimits(h, o, r, &e, why)
		return e, err
	default:
		err := actOnMonitor(o, r, &e)
		return e, err
	}
	return e, nil
}

const noOverride = "no override"

// unsupported returns the error for a verb that the object does not have.
func unsupported(o *adminhook.Object, r *request, verbs []string) error {
	has := "none"
	if len(verbs) > 0 {
		has = strings.Join(verbs, ", ")
	}
	if o.Keyed != nil && o.Members == nil {
		one, _ := o.Keyed("")
		has += ", and for one key of it " + strings.Join(actionsOf(&one), ", ")
	}
	of := "the " + o.Kind
	if r.action.Key != "" {
		of = "one key of the " + o.Kind
		if r.action.Verb == verbLimits {
			has += "; all keys have the limits of the group, leave out the key"
		}
	}
	return replyErrorf(http.StatusConflict, "%s is not possible for %s %.64q, which has: %s", r.action.Verb, of, o.Name, has)
}

// property is a property of an object that an action changes. It is restored when the action ends.
// Its values can be compared.
type property[V comparable] struct {
	what string
	now  func() V
	set  func(v V, why string)
	text func(v V) string
}

// overrideProperty returns the override of an object. The value "" means no override.
func overrideProperty(o *adminhook.Object) property[string] {
	return property[string]{
		what: "override",
		now:  o.Override,
		set: func(v, why string) {
			if v == "" {
				o.Release(why)
			} else {
				o.Force(v, why)
			}
		},
		text: func(v string) string {
			if v == "" {
				return noOverride
			}
			return v
		},
	}
}
