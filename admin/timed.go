package admin

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/stat/view"
)

// target is an object on which actions were done.
type target struct {
	id      id
	busy    sync.Mutex // held while an action changes the object
	testing sync.Mutex // held while a test message is sent

	override timedAction // guarded by busy, except its until and after
	limits   timedAction

	// Guarded by Handler.mu.
	users          int // requests that are using the target, which is kept meanwhile
	heldFrom, held time.Time
	acts           []entry
}

// change is a value that an action gives to a setting of an object.
type change struct {
	part    string // which names the settings among those that one timed action can change
	tunable view.Tunable
	to      []view.Setting
}

// timedChange is a change that ends automatically.
type timedChange struct {
	change

	set  []view.Setting
	base []view.Setting // the settings that are restored at the end
}

// timedAction is an action on some settings of an object that ends automatically. The zero value
// means that there is none.
type timedAction struct {
	timer   *time.Timer
	begun   int // counts the actions, so that a timer that fired late changes nothing
	changes map[string]*timedChange

	// Guarded by Handler.mu.
	until time.Time // zero if there is none
	after string    // the values that are restored, as text
}

// aspect is what the changes of a timed action have in common.
type aspect struct {
	what string
	of   func(t *target) *timedAction
	text func(settings map[string][]view.Setting) string // by the part of the change
}

// begin sets the values, or none of them if one is invalid. If d is above 0, the earlier values are
// restored after d. If an earlier timed action has not ended, these are the values before the first
// one, unless others have set them since.
func (x *timedAction) begin(h *Handler, t *target, a *aspect, list []change, why string, d time.Duration) error {
	next := maps.Clone(x.changes)
	if next == nil {
		next = map[string]*timedChange{}
	}
	var done []timedChange
	for _, c := range list {
		base := c.settings()
		now, err := c.tunable.Set(why, c.to...)
		if err != nil {
			for _, set := range done {
				set.tunable.Restore(why, set.set, set.base)
			}
			return err
		}
		done = append(done, timedChange{c, now, base})
		if old, ok := next[c.part]; ok && sameVersions(old.set, base) {
			base = old.base
		}
		next[c.part] = &timedChange{c, now, base}
		if d <= 0 {
			delete(next, c.part)
		}
	}
	if d <= 0 && len(next) > 0 { // the other changes end as planned
		x.changes = next
		h.mu.Lock()
		defer h.mu.Unlock()
		x.after = a.text(x.values(earlierSettings))
		return nil
	}
	x.stop(h)
	if d <= 0 {
		return nil
	}
	x.changes = next
	begun := x.begun
	h.mu.Lock()
	x.until, x.after = time.Now().Add(d), a.text(x.values(earlierSettings))
	h.mu.Unlock()
	x.timer = time.AfterFunc(d, func() { x.end(h, t, a, begun) })
	return nil
}

// settings returns the present values of the settings of the change, in the same order.
func (c *change) settings() []view.Setting {
	all, now := settingsOf(c.tunable), make([]view.Setting, len(c.to))
	for i, s := range c.to {
		now[i] = view.Setting{Name: s.Name}
		if at := slices.IndexFunc(all, func(one view.Setting) bool { return one.Name == s.Name }); at >= 0 {
			now[i] = all[at]
		}
	}
	return now
}

// settingsOf returns the settings of a guard, or none if it panics.
func settingsOf(t view.Tunable) (s []view.Setting) {
	defer func() { logPanic("Settings", recover()) }()
	return t.Settings()
}

// logPanic logs the panic of a guard of the user, unless there was none. The other guards must not
// be lost because of it, and a timer must not end the program.
func logPanic(method string, cause any) {
	if cause != nil {
		slog.Error("admin: a guard panicked", "event.name", eventRefused, "method", method, "panic", truncateText(fmt.Sprint(cause), maxReason))
	}
}

// sameVersions reports whether the settings set were not set again: then now has their versions.
func sameVersions(set, now []view.Setting) bool {
	for _, s := range set {
		if !slices.ContainsFunc(now, func(one view.Setting) bool { return one.Name == s.Name && one.Version == s.Version }) {
			return false
		}
	}
	return len(set) == len(now)
}

// values returns the settings of each change.
func (x *timedAction) values(of func(c *timedChange) []view.Setting) map[string][]view.Setting {
	values := map[string][]view.Setting{}
	for part, c := range x.changes {
		values[part] = of(c)
	}
	return values
}

// undo restores the settings, and reports whether it did.
func (c *timedChange) undo() (done bool) {
	defer func() { logPanic("Restore", recover()) }()
	return c.tunable.Restore("by the end of a timed action", c.set, c.base)
}

func earlierSettings(c *timedChange) []view.Setting  { return c.base }
func settingsOfAction(c *timedChange) []view.Setting { return c.set }
func presentSettings(c *timedChange) []view.Setting  { return c.settings() }

// stop forgets the timed action.
func (x *timedAction) stop(h *Handler) {
	x.begun++
	// A timer that is overdue has fired, or is one of a testing/synctest bubble that has ended. The
	// program would end if such a timer were stopped outside of the bubble.
	if x.timer != nil && time.Until(x.until) > 0 {
		x.timer.Stop()
	}
	x.timer = nil
	x.changes = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	x.until, x.after = time.Time{}, ""
}

// end ends a timed action, unless another action has replaced it. It does not restore a value that
// was set since the action, even if it was set to the same value.
func (x *timedAction) end(h *Handler, t *target, a *aspect, begun int) {
	t.busy.Lock()
	defer t.busy.Unlock()
	if x.begun != begun {
		return
	}
	e := entry{Verb: verbEnd, Before: a.text(x.values(settingsOfAction)), After: a.text(x.values(earlierSettings))}
	kept := 0
	for _, part := range slices.Sorted(maps.Keys(x.changes)) {
		if !x.changes[part].undo() {
			kept++
		}
	}
	switch {
	case kept == len(x.changes):
		e.Before = a.text(x.values(presentSettings))
		e.After, e.Reason = e.Before, "the "+a.what+" was changed by other means, and stays"
	case kept > 0:
		e.After = a.text(x.values(presentSettings))
		e.Reason = "a part of the " + a.what + " was changed by other means, and stays"
	}
	x.stop(h)
	h.record(t, e)
}

// noteHold notes a hold. Holds end by themselves, and a shorter hold does not replace a longer one.
func (t *target) noteHold(h *Handler, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if end := now.Add(d); !t.isHeld(now) || end.After(t.held) {
		t.heldFrom, t.held = now, end
	}
}

// isHeld reports whether there is a hold. A hold that begins later than now is one of another
// clock, such as that of a testing/synctest bubble. Handler.mu is held.
func (t *target) isHeld(now time.Time) bool { return !now.Before(t.heldFrom) && now.Before(t.held) }

// endHolds notes that a reset has ended the hold of the object, and those of all its keys if the
// object is a whole group.
func (h *Handler) endHolds(reset id) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, t := range h.targets {
		if id == reset || reset.key == "" && (id.source == reset.source && id.kind == reset.kind && id.name == reset.name) {
			t.held = time.Time{}
		}
	}
}

// claim returns the target of an object, which is kept until unclaim.
func (h *Handler) claim(id id) (*target, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.targets[id]
	if t == nil {
		if len(h.targets) >= maxTargets && !h.evictTarget() {
			return nil, replyErrorf(http.StatusServiceUnavailable, "%d objects have timed actions, which is the most", maxTargets)
		}
		t = &target{id: id}
		h.targets[id] = t
	}
	t.users++
	return t, nil
}

// unclaim ends the use of a target. A target to which nothing was done is not kept.
func (h *Handler) unclaim(t *target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.users--
	if t.users == 0 && len(t.acts) == 0 {
		delete(h.targets, t.id)
	}
}

// evictTarget removes the target whose last action is the oldest, among the targets that have no
// timed action and that no request uses. Handler.mu is held.
func (h *Handler) evictTarget() bool {
	var oldest *target
	for _, t := range h.targets {
		if t.users > 0 || !t.override.until.IsZero() || !t.limits.until.IsZero() {
			continue
		}
		if oldest == nil || t.lastActionAt().Before(oldest.lastActionAt()) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(h.targets, oldest.id)
	}
	return oldest != nil
}

func (t *target) lastActionAt() time.Time { return t.acts[len(t.acts)-1].At }

// The values of event.name in the log.
const (
	eventAction  = "weir.admin.action"
	eventRefused = "weir.admin.refused"
)

// entry is one line of the history of an object.
type entry struct {
	At     time.Time `json:"at"`
	User   string    `json:"user,omitempty"` // none for the end of a timed action
	Verb   string    `json:"verb"`
	For    string    `json:"for,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Before string    `json:"before,omitempty"`
	After  string    `json:"after,omitempty"`
}

func (h *Handler) logEntry(t *target, e entry) {
	attrs := []slog.Attr{
		slog.String("event.name", eventAction), slog.String("verb", e.Verb),
		slog.String("kind", t.id.kind), slog.String("name", t.id.name),
	}
	for _, a := range [][2]string{
		{"key", t.id.key}, {"user", e.User}, {"for", e.For}, {"before", e.Before}, {"after", e.After}, {"reason", e.Reason},
	} {
		if a[1] != "" {
			attrs = append(attrs, slog.String(a[0], a[1]))
		}
	}
	h.config.Logger.LogAttrs(background, slog.LevelWarn, "admin: "+e.Verb, attrs...)
}
