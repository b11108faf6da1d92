package admin

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// target is an object on which actions were done.
type target struct {
	id      id
	busy    sync.Mutex // held while an action changes the object
	testing sync.Mutex // held while a test message is sent

	override timedAction[string] // guarded by busy, except its until and after
	limits   timedAction[limits]

	// Guarded by Handler.mu.
	users int // requests that are using the target, which is kept meanwhile
	held  time.Time
	acts  []entry
}

// timedAction is an action on one property that ends automatically. The zero value means that there
// is none.
type timedAction[V comparable] struct {
	timer *time.Timer
	begun int // counts the actions, so that a timer that fired late changes nothing
	set   V
	base  V // the value that is restored at the end

	// Guarded by Handler.mu.
	until time.Time // zero if there is none
	after string    // base as text
}

// begin sets the value v. If d is above 0, the old value is restored after d. If earlier timed
// actions have not ended, this is the value before the first of them.
func (x *timedAction[V]) begin(h *Handler, t *target, a property[V], v V, why string, d time.Duration) {
	base := a.now()
	if x.timer != nil && base == x.set { // otherwise a change by other code has replaced the action
		base = x.base
	}
	x.stop(h)
	a.set(v, why)
	if d <= 0 {
		return
	}
	x.set, x.base = a.now(), base
	begun := x.begun
	h.mu.Lock()
	x.until, x.after = time.Now().Add(d), a.text(base)
	h.mu.Unlock()
	x.timer = time.AfterFunc(d, func() { x.end(h, t, a, begun) })
}

// stop forgets the timed action.
func (x *timedAction[V]) stop(h *Handler) {
	x.begun++
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x.until, x.after = time.Time{}, ""
}

// end ends a timed action, unless another action has replaced it. If other code has changed the
// value since, the changed value stays.
func (x *timedAction[V]) end(h *Handler, t *target, a property[V], begun int) {
	t.busy.Lock()
	defer t.busy.Unlock()
	if x.begun != begun {
		return
	}
	base, set := x.base, x.set
	e := entry{Verb: verbEnd, Before: a.text(set), After: a.text(base)}
	if now := a.now(); now == set {
		a.set(base, "by the end of a timed action")
	} else {
		e.Before, e.After = a.text(now), a.text(now)
		e.Reason = "the " + a.what + " was changed by other means, and stays"
	}
	x.stop(h)
	h.record(t, e)
}

// heldUntil notes when a hold ends. Holds end by themselves, and a shorter hold does not replace a
// longer one.
func (t *target) heldUntil(h *Handler, end time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if end.After(t.held) {
		t.held = end
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
