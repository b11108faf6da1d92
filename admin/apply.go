package admin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat/view"
)

// apply does the action that the request asks for. The caller holds t.busy, or t.testing for a test
// message. t.busy is held also while the OnChange of a breaker is called, so the actions on an
// object take effect in the order of its history.
func (t *target) apply(h *Handler, o *object, r *request) (entry, error) {
	v := &r.body
	e := entry{Verb: r.action.Verb, User: r.user, Reason: v.reason, For: durationText(v.duration)}
	why := "by " + r.user
	if v.reason != "" {
		why += ": " + v.reason
	}
	verbs := actionsOf(o, o.settings())
	if !slices.Contains(verbs, r.action.Verb) {
		return e, unsupported(o, r, verbs)
	}
	switch r.action.Verb {
	case verbForce, verbDrain, verbRelease:
		if r.action.Verb == verbDrain {
			v.state = breaker.ForcedOpen
		}
		e.Before = cmp.Or(o.state(), noOverride) // a group has no other state
		if err := t.override.begin(h, t, overrides, overrideChanges(o, v.state), why, v.duration); err != nil {
			return e, replyErrorf(http.StatusBadRequest, "%v", err)
		}
		e.After = cmp.Or(o.state(), noOverride)
	case verbReset:
		if err := o.Reset(r.Context(), why); err != nil {
			return e, replyErrorf(http.StatusBadGateway, "the reset failed: %.300v", err)
		}
		if o.Kind == "limiter_group" || o.Kind == "policy" { // a breaker has no hold
			h.endHolds(t.id)
		}
	case verbHold:
		o.Hold(v.duration)
		t.noteHold(h, v.duration)
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
func unsupported(o *object, r *request, verbs []string) error {
	has := "none"
	if len(verbs) > 0 {
		has = strings.Join(verbs, ", ")
	}
	if o.Keyed != nil && o.Members == nil {
		one, _ := o.Keyed("")
		has += ", and for one key of it " + strings.Join(actionsOf(&one, one.settings()), ", ")
	}
	of := "the " + o.Kind
	if r.action.Key != "" {
		of = "one key of the " + o.Kind
		if r.action.Verb == verbLimits {
			has += "; all keys have the limits of the group, use all=true"
		}
	}
	return replyErrorf(http.StatusConflict, "%s is not possible for %s %.64q, which has: %s", r.action.Verb, of, o.Name, has)
}

// overrides is the aspect of the actions force, drain and release.
var overrides = &aspect{
	what: "override",
	of:   func(t *target) *timedAction { return &t.override },
	text: func(settings map[string][]view.Setting) string {
		texts := map[string]bool{}
		for _, s := range settings {
			texts[cmp.Or(valueOf(s, "state"), noOverride)] = true
		}
		return strings.Join(slices.Sorted(maps.Keys(texts)), ", ")
	},
}

// overrideChanges returns the changes that set the override of an object, or lift it if s is "".
func overrideChanges(o *object, s breaker.State) (list []change) {
	to := []view.Setting{{Name: "state", Value: string(s)}}
	if !o.PerMember {
		return []change{{"", o.tunable, to}}
	}
	for key, m := range o.Members {
		list = append(list, change{key, m.tunable, to})
	}
	return list
}
