package inflight

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// join puts a caller into the backlog.
func (b *backlog) join(w *waiter) { b.push(w, b.config.tenantWeight(w.caller.Tenant)) }

// victimFor returns the waiter that leaves so that the caller can join.
func (b *backlog) victimFor(c Caller, now time.Duration) *waiter {
	return b.victim(c, b.config.tenantWeight(c.Tenant), now)
}

// sliceBacklog is a backlog that keeps all waiters in one slice, in order of arrival.
type sliceBacklog []*waiter

func (p sliceBacklog) selectWaiters(class int, tenant string) (found sliceBacklog) {
	for _, w := range p {
		if w.caller.Priority.class() == class && (tenant == "*" || w.caller.Tenant == tenant) {
			found = append(found, w)
		}
	}
	return found
}

// Waiters come, leave, are served and are evicted at random.
func TestABacklogServesAsAListWould(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := backlog{config: Queue{Target: 5 * ms, OldestFirst: seed%2 == 0, TenantWeight: func(name string) float64 { return float64(len(name)) }}}
		var all sliceBacklog
		now := time.Duration(0)
		for range 500 {
			now += time.Duration(r.IntN(int(2 * ms)))
			action := r.IntN(6)
			switch caller := randomCaller(r); {
			case action < 3:
				w := &waiter{caller: caller, since: now}
				b.join(w)
				all = append(all, w)
			case len(all) == 0:
			case action == 3:
				i := r.IntN(len(all))
				b.remove(all[i], now)
				all = slices.Delete(all, i, i+1)
			case action == 4:
				victim := b.victimFor(caller, now)
				requireVictim(t, &b, all, caller, victim)
			default:
				w, tooLong := b.next(now)
				requireTurn(t, &b, all, now, w, tooLong)
				if tooLong {
					b.remove(w, now)
				} else {
					b.serve(w, now)
				}
				all = slices.DeleteFunc(all, func(other *waiter) bool { return other == w })
			}
			require.Equal(t, len(all), b.length)
		}
	}
}

func randomCaller(r *rand.Rand) Caller {
	return Caller{Priority: Priority(r.IntN(priorities)) + Background, Tenant: "aaa"[:r.IntN(4)], Retry: r.IntN(4) == 0}
}

// requireTurn fails unless w is the right waiter to be served or dropped.
func requireTurn(t *testing.T, b *backlog, all sliceBacklog, now time.Duration, w *waiter, tooLong bool) {
	t.Helper()
	for i := range b.classes {
		if len(all.selectWaiters(i, "*")) > 0 {
			require.GreaterOrEqual(t, b.classes[i].pass, b.classes[w.caller.Priority.class()].pass, "a class that is next")
		}
	}
	class := w.caller.Priority.class()
	for _, other := range all.selectWaiters(class, "*") {
		require.GreaterOrEqual(t, other.tenant.pass, w.tenant.pass, "a tenant that is next")
	}
	own := all.selectWaiters(class, w.caller.Tenant)
	wait := now - own[0].since
	require.Equal(t, b.overloaded && wait > 5*ms, tooLong)
	if tooLong || !b.overloaded && wait <= 15*ms || b.config.OldestFirst {
		require.Same(t, own[0], w)
	} else {
		require.Same(t, own[len(own)-1], w)
	}
}

// requireVictim fails unless the waiter, or the caller itself if it is nil, is the right one to
// leave.
func requireVictim(t *testing.T, b *backlog, all sliceBacklog, caller Caller, victim *waiter) {
	t.Helper()
	lowest := 0
	for _, w := range all {
		lowest = max(lowest, w.caller.Priority.class())
	}
	retryWaits := slices.ContainsFunc(all.selectWaiters(lowest, "*"), func(w *waiter) bool { return w.caller.Retry })
	if victim == nil {
		require.GreaterOrEqual(t, caller.Priority.class(), lowest)
		require.False(t, caller.Priority.class() == lowest && !caller.Retry && retryWaits, "a retry leaves first")
		return
	}
	require.Equal(t, lowest, victim.caller.Priority.class())
	require.LessOrEqual(t, caller.Priority.class(), lowest)
	require.False(t, caller.Priority.class() == lowest && caller.Retry, "the caller is a retry")
	if retryWaits {
		require.True(t, victim.caller.Retry)
		return
	}
	load := func(name string) float64 {
		return float64(len(all.selectWaiters(lowest, name))) / b.config.tenantWeight(name)
	}
	for _, w := range all.selectWaiters(lowest, "*") {
		require.LessOrEqual(t, load(w.caller.Tenant), load(victim.caller.Tenant), "a tenant with more waiters for its weight")
	}
}

func TestPrioritiesThatWaitShareTheSlots(t *testing.T) {
	for name, c := range map[string]struct {
		shares map[Priority]float64
		want   [priorities]int
	}{
		"by default": {nil, [priorities]int{80, 40, 20, 10}},
		"as set":     {map[Priority]float64{Critical: 1, Normal: 1, Low: 1, Background: 7}, [priorities]int{15, 15, 15, 105}},
	} {
		b := backlog{config: Queue{Shares: c.shares}}
		for p := Background; p <= Critical; p++ {
			for range 150 {
				b.join(&waiter{caller: Caller{Priority: p}})
			}
		}
		var got [priorities]int
		for range 150 {
			w, _ := b.next(0)
			b.serve(w, 0)
			got[w.caller.Priority.class()]++
		}
		for i := range got {
			require.InDelta(t, c.want[i], got[i], 1, "%s: %v", name, got)
		}
	}
}

func TestTenantsThatWaitShareTheSlotsByWeight(t *testing.T) {
	b := backlog{config: Queue{TenantWeight: func(name string) float64 { return map[string]float64{"large": 3, "odd": -1}[name] }}}
	for name, n := range map[string]int{"large": 900, "odd": 900, "small": 30} {
		for range n {
			b.join(&waiter{caller: Caller{Tenant: name}})
		}
	}
	got := map[string]int{}
	for range 150 {
		w, _ := b.next(0)
		b.serve(w, 0)
		got[w.caller.Tenant]++
	}
	require.Equal(t, map[string]int{"large": 90, "odd": 30, "small": 30}, got)
}

// A tenant that waits now and then saves up no turns.
func TestATenantThatWasAwayHasNoTurnsSavedUp(t *testing.T) {
	var b backlog
	push := func(name string) { b.join(&waiter{caller: Caller{Tenant: name}}) }
	for range 100 {
		push("busy")
	}
	for range 50 {
		w, _ := b.next(0)
		b.serve(w, 0)
	}
	for range 20 {
		push("back")
	}
	got := map[string]int{}
	for range 10 {
		w, _ := b.next(0)
		b.serve(w, 0)
		got[w.caller.Tenant]++
	}
	require.InDelta(t, 5, got["back"], 1)
}
