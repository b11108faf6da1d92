package admin

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// id identifies an object. An object that was removed and another one that was added by its name
// differ in their source. The key is empty unless the object is a member of a group.
type id struct {
	source          any // nil if it cannot be compared
	kind, name, key string
}

func idOf(o object, key string) id { return id{o.Source, o.Kind, o.Name, key} }

// sameObject reports whether two sources are the same object.
func sameObject(a, b stat.Source) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

func contains(list []stat.Source, s stat.Source) bool {
	return slices.ContainsFunc(list, func(other stat.Source) bool { return other != nil && sameObject(other, s) })
}

// objects returns the objects of the sources. The breaker of a gate is a part of the gate, as long
// as both have the same name.
func objects(sources []stat.Source) []object {
	sources = flatten(sources)
	list := make([]object, 0, len(sources))
	for _, s := range sources {
		if b, ok := s.(*breaker.Breaker); ok && hasGate(sources, b) {
			continue
		}
		list = append(list, objectsOf(s)...)
	}
	return list
}

// sourceSet is a source that consists of sources, which may change, such as a weirconfig.Set.
type sourceSet interface{ Sources() []stat.Source }

// flatten replaces each set by its current sources. A set may be one of its own sources. A source
// that occurs twice, also within sets, is in the result once.
func flatten(sources []stat.Source) []stat.Source {
	isSet := func(s stat.Source) bool { _, ok := s.(sourceSet); return ok }
	if !slices.ContainsFunc(sources, isSet) {
		return sources
	}
	var flat []stat.Source
	add := func(s stat.Source) {
		if s != nil && !contains(flat, s) {
			flat = append(flat, s)
		}
	}
	for _, s := range sources {
		set, ok := s.(sourceSet)
		if !ok {
			add(s)
			continue
		}
		for _, one := range sourcesOf(set) {
			if !isSet(one) {
				add(one)
			}
		}
	}
	return flat
}

// sourcesOf returns the current sources of a set, or none if it panics.
func sourcesOf(set sourceSet) (sources []stat.Source) {
	defer func() { logPanic("Sources", recover()) }()
	return set.Sources()
}

// objectsOf returns the objects of a source that have names: none, one, or the policies of a
// weirhttp.Limit. A source of a user that panics has none.
func objectsOf(s stat.Source) (list []object) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic("Views", cause)
			list = nil
		}
	}()
	m, _ := s.(*alert.Monitor)
	if viewer, ok := s.(view.Viewer); ok {
		for v := range viewer.Views {
			if v != nil {
				list = append(list, newObject(v))
			}
		}
	} else if o, ok := foreignObject(s); ok {
		list = []object{o}
	}
	for i := range list {
		if list[i].Kind == kindMonitor {
			list[i].Monitor = m
		}
		if reflect.ValueOf(s).Comparable() {
			list[i].Source = s
		}
	}
	// the methods of a monitor are not those of a type that embeds it
	return slices.DeleteFunc(list, func(o object) bool { return o.Name == "" || o.Kind == kindMonitor && m == nil })
}

// identify returns the name that no other source may have. The name is empty for a set, and for a
// source whose names can change. ok reports whether the source has objects at all.
func identify(s stat.Source) (name id, ok bool) {
	if _, ok := s.(sourceSet); ok {
		return name, true
	}
	list := objectsOf(s)
	if len(list) != 1 || list[0].Kind == kindMonitor || list[0].Kind == "policy" {
		// a Viewer may have views later, such as a weirhttp.Limit without policies
		_, viewer := s.(view.Viewer)
		return name, viewer || len(list) > 0
	}
	return id{kind: list[0].Kind, name: list[0].Name}, true
}

// hasGate reports whether the sources have a gate with the breaker b and with the same name as b.
func hasGate(sources []stat.Source, b *breaker.Breaker) bool {
	return slices.ContainsFunc(sources, func(s stat.Source) bool {
		g, ok := s.(interface {
			Breaker() *breaker.Breaker
			Name() string
		})
		return ok && g.Breaker() == b && g.Name() == b.Name()
	})
}

func (h *Handler) objects() []object {
	h.mu.Lock()
	sources := h.sources
	h.mu.Unlock()
	return objects(unnamed(sources))
}

// find returns the object that the action names, without regard to its key.
func (h *Handler) find(a Action) (o object, err error) {
	if a.Name == "" {
		return o, replyErrorf(http.StatusBadRequest, "the query has no name")
	}
	var found []object
	var kinds []string
	for _, o := range h.objects() {
		if o.Name == a.Name && (a.Kind == "" || a.Kind == o.Kind) {
			found, kinds = append(found, o), append(kinds, o.Kind)
		}
	}
	switch len(found) {
	case 0:
		return o, replyErrorf(http.StatusNotFound, "there is no %s %.64q", cmp.Or(a.Kind, "object"), a.Name)
	case 1:
		return found[0], nil
	}
	if slices.Sort(kinds); kinds[0] == kinds[len(kinds)-1] {
		return o, replyErrorf(http.StatusConflict,
			"%.64q is the name of %d objects of the kind %s: each needs a name of its own", a.Name, len(found), kinds[0])
	}
	return o, replyErrorf(http.StatusConflict, "%.64q is the name of several objects, add kind=…: %s", a.Name, strings.Join(kinds, ", "))
}

// hasKeys reports whether the object is a group, or has keys like one.
func hasKeys(o *object) bool { return o.Members != nil || o.Keyed != nil }

// findMember returns the object that the action names: a member of a group, if it has a key.
func (h *Handler) findMember(a Action) (object, error) {
	o, err := h.find(a)
	if err != nil || a.Key == "" {
		return o, err
	}
	m, err := memberOf(&o, a.Key)
	m.Kind, m.Source = o.Kind, o.Source
	return m, err
}

// memberOf returns the member of an object with a key.
func memberOf(o *object, key string) (m object, err error) {
	if !hasKeys(o) {
		return m, replyErrorf(http.StatusBadRequest, "the %s %.64q is not a group and has no keys", o.Kind, o.Name)
	}
	n := 0
	if o.Members != nil {
		for text, one := range o.Members {
			if text == key {
				m = one
				n++
			}
		}
	}
	switch {
	case n == 1:
		return m, nil
	case n > 1:
		return m, replyErrorf(http.StatusConflict, "%d keys of the %s %.64q have the text %.64q: which one is meant cannot be told", n, o.Kind, o.Name, key)
	}
	if o.Keyed != nil {
		if m, ok := o.Keyed(key); ok {
			return m, nil
		}
	}
	return m, replyErrorf(http.StatusNotFound, "the %s %.64q has no key %.64q now", o.Kind, o.Name, key)
}
