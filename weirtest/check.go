package weirtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// WantRefused fails the test unless err is a refusal for the reason: unless it matches
// weir.ErrRefused and reason, such as breaker.ErrOpen, limiter.ErrLimited or inflight.ErrFull. Any
// refusal matches the reason weir.ErrRefused.
func WantRefused(t testing.TB, err, reason error) {
	t.Helper()
	if !errors.Is(err, weir.ErrRefused) || !errors.Is(err, reason) {
		t.Errorf("error is %q, want a refusal: %q", errorText(err), reason)
	}
}

func errorText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

// Transitions records the transitions of breakers. Set its method Record as
// breaker.Config.OnChange. The zero value has none. All methods may be called from any number of
// goroutines.
type Transitions struct {
	list list[breaker.Change]
}

// Record adds a transition.
func (r *Transitions) Record(c breaker.Change) { r.list.add(c) }

// All returns the transitions so far, the oldest first.
func (r *Transitions) All() []breaker.Change { return r.list.all() }

// Want fails the test unless the breakers have entered exactly these states so far, in this order.
// The state in which a breaker began is none of them. A breaker becomes half-open when the first
// call after the cooldown, or a reader of its state, comes.
func (r *Transitions) Want(t testing.TB, states ...breaker.State) {
	t.Helper()
	var entered []breaker.State
	for _, c := range r.All() {
		entered = append(entered, c.To)
	}
	if !slices.Equal(entered, states) {
		t.Errorf("entered states are %v, want %v", entered, states)
	}
}

// Alerts is an alert.Notifier that keeps what it gets. Put its address into alert.Config.Notify.
// The zero value has no alerts. All methods may be called from any number of goroutines.
type Alerts struct {
	list list[alert.Alert]
}

// Name returns "weirtest".
func (r *Alerts) Name() string { return "weirtest" }

// Notify adds an alert. It never fails.
func (r *Alerts) Notify(_ context.Context, a alert.Alert) error {
	r.list.add(a)
	return nil
}

// All returns the alerts so far, the oldest first: one when it fires, and one when it resolves.
func (r *Alerts) All() []alert.Alert { return r.list.all() }

// Want fails the test unless the alerts of a rule had exactly these states so far, in this order:
// alert.Firing and alert.Resolved in turn. Without states, the rule must have sent no alert.
func (r *Alerts) Want(t testing.TB, rule string, states ...alert.State) {
	t.Helper()
	var got []alert.State
	for _, a := range r.All() {
		if a.Rule == rule {
			got = append(got, a.State)
		}
	}
	if !slices.Equal(got, states) {
		t.Errorf("alerts of the rule %q are %v, want %v", rule, got, states)
	}
}

// list is a list that several goroutines extend.
type list[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *list[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
}

func (l *list[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}
