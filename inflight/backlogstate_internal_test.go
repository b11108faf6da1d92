package inflight

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// arrive puts a new waiter into the backlog.
func (b *backlog) arrive(at time.Duration) *waiter {
	w := &waiter{since: at}
	b.push(w)
	return w
}

func TestABacklogIsOverloadedOnlyIfAllWaitsWereLong(t *testing.T) {
	b := backlog{config: Queue{Target: 5 * ms}}
	first := b.arrive(10 * time.Second)
	b.serve(first, 10*time.Second+50*ms)
	require.False(t, b.overloaded, "before, there was no waiter")

	b = backlog{config: Queue{Target: 5 * ms}}
	first, short, last := b.arrive(0), b.arrive(19*ms), b.arrive(20*ms)
	b.serve(first, 20*ms)
	b.serve(short, 21*ms)
	b.serve(last, 110*ms)
	require.False(t, b.overloaded, "one waited for 2 ms")

	b = backlog{config: Queue{Target: 5 * ms}}
	first, last = b.arrive(0), b.arrive(20*ms)
	b.serve(first, 20*ms)
	b.serve(last, 110*ms)
	require.True(t, b.overloaded)
	b.serve(b.arrive(114*ms), 116*ms)
	require.True(t, b.overloaded, "there was no waiter for 4 ms")
	b.serve(b.arrive(121*ms), 122*ms)
	require.False(t, b.overloaded, "there was no waiter for 5 ms")
}

// A priority that waits now and then saves up no turns.
func TestAPriorityThatWasAwayHasNoTurnsSavedUp(t *testing.T) {
	b := backlog{config: Queue{Shares: map[Priority]float64{Low: 1, Normal: 1}}}
	for range 100 {
		b.push(&waiter{})
	}
	serve := func() Priority {
		w, _ := b.next(0)
		b.serve(w, 0)
		return w.caller.Priority
	}
	for range 50 {
		serve()
	}
	low := 0
	for range 20 {
		b.push(&waiter{caller: Caller{Priority: Low}})
	}
	for range 10 {
		if serve() == Low {
			low++
		}
	}
	require.InDelta(t, 5, low, 1)
}

func TestThePlaceOfACaller(t *testing.T) {
	b := backlog{config: Queue{Shares: map[Priority]float64{Critical: 2, Normal: 1}}}
	push := func(n int, c Caller) (last *waiter) {
		for range n {
			last = &waiter{caller: c}
			b.push(last)
		}
		return last
	}
	place := func(want float64, c Caller, why string) {
		require.InDelta(t, want, b.position(c), 1, why)
	}
	place(1, Caller{}, "the first")
	push(3, Caller{Tenant: "b"})
	push(20, Caller{Tenant: "c"})
	gone := push(1, Caller{Tenant: "a"})
	place(12, Caller{Tenant: "b"}, "three tenants take turns")
	b.remove(gone, 0)
	place(8, Caller{Tenant: "b"}, "two tenants take turns")
	place(24, Caller{Tenant: "c"}, "the last of all")
	push(10, Caller{Priority: Critical})
	place(18, Caller{Tenant: "b"}, "and all of the critical ones")
	place(16, Caller{Priority: Critical}, "a turn in three is normal")
}

// A caller of a tenant with as many waiters as any other leaves a full queue itself.
func TestACallerOfTheLongestTenantIsTheVictim(t *testing.T) {
	var b backlog
	for range 2 {
		for _, name := range []string{"a", "b"} {
			b.push(&waiter{caller: Caller{Tenant: name}})
		}
	}
	require.Nil(t, b.victim(Caller{Tenant: "a"}, 0))
	require.Nil(t, b.victim(Caller{Tenant: "b"}, 0))
	require.NotNil(t, b.victim(Caller{Tenant: "c"}, 0))
}

// The caller that would be served last leaves a full queue: the newest, or the oldest if the newest
// is served first.
func TestTheVictimIsTheOneThatWouldBeServedLast(t *testing.T) {
	b := backlog{config: Queue{Target: 5 * ms}}
	oldest, newest := &waiter{caller: Caller{Tenant: "a"}}, &waiter{caller: Caller{Tenant: "a"}, since: 14 * ms}
	b.push(oldest)
	b.push(newest)
	require.Same(t, newest, b.victim(Caller{}, 15*ms))
	require.Same(t, oldest, b.victim(Caller{}, 16*ms))
	b.config.OldestFirst = true
	require.Same(t, newest, b.victim(Caller{}, 16*ms))
}

// Callers come every 10 ms and are served every 20 ms, the newest first. So no served caller has
// waited for long, and yet the queue is overloaded after an Interval.
func TestABacklogThatServesTheNewestIsOverloadedByTheOrderOfArrival(t *testing.T) {
	b := backlog{config: Queue{Target: 5 * ms}}
	for now := time.Duration(0); now <= 140*ms; now += 10 * ms {
		b.arrive(now)
		if now%(20*ms) == 0 && now > 0 {
			w, _ := b.next(now)
			b.serve(w, now)
		}
		require.Equal(t, now >= 100*ms, b.overloaded, "after %v", now)
	}
}

// A limit that bounds calls is not raised when it is reached. A refused call only leaves a note for
// the next call that ends, unless a probe is due.
func TestALimitThatBoundsCallsIsRaisedByTheirEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Adaptive: true})
		a := l.adaptive.Load()
		time.Sleep(time.Minute)
		a.adaptation.bounding, a.adaptation.passedAt = true, time.Minute
		a.store()
		require.False(t, a.tryRaise(startLimit))
		require.Equal(t, startLimit, l.Limit())
		require.True(t, a.reached.Load())
		a.end(time.Minute, 1, ignored, time.Time{})
		require.False(t, a.reached.Load())
		require.Equal(t, time.Minute, a.adaptation.lastUse, "the limit was in use")
		time.Sleep(2*time.Second - 1)
		require.False(t, a.tryRaise(startLimit))
		time.Sleep(time.Nanosecond)
		require.True(t, a.tryRaise(startLimit), "a probe")
		require.False(t, a.tryRaise(startLimit+1))
		require.NoError(t, l.SetLimit(7))
		require.Equal(t, 7, l.Limit())
		a.adaptation.bounding = false
		require.NoError(t, l.SetLimit(1000))
		require.Equal(t, startLimit, l.Limit(), "it is raised when it is reached")
	})
}
