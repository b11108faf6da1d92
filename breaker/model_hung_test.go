package breaker_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
)

// modelPause is the model's record of the latest pause in which no call began.
type modelPause struct {
	seen     int64 // the last tick in which a call came
	from, to time.Duration
	counted  time.Duration // calls that were slow by then have been counted
}

// modelHungSizes returns the length of a slice and of a tick, and the age up to which calls count.
func modelHungSizes(k *breaker.Config) (slice, tick, kept time.Duration) {
	memory := k.Window
	if k.LastCalls > 0 {
		memory = time.Hour
	}
	kept = k.SlowCall + memory
	slice = kept / 32
	if k.LastCalls == 0 {
		slice = max(slice, k.Window/time.Duration(k.Buckets))
	}
	slice = max(min(slice, (k.SlowCall+time.Second)/2), 1)
	return slice, min(slice, max(k.SlowCall/8, time.Millisecond)), kept
}

func (m *modelBreaker) forgetFlying() { m.flying, m.looked, m.pause = nil, 0, modelPause{} }

// watch remembers a call that began at the given time. If that time is stale, it remembers a later
// time.
func (m *modelBreaker) watch(c *modelCall, t time.Duration) {
	if m.config.HungCalls {
		_, tick, _ := modelHungSizes(&m.config)
		c.flying = t
		if newest := time.Duration(m.pause.seen) * tick; t < newest {
			c.flying = newest + tick
		}
		m.flying = append(m.flying, c)
	}
}

// lookForHung opens a closed or recovering breaker on calls that hang. It looks for them once per
// slice of time, and knows of each call only the slice in which it started.
func (m *modelBreaker) lookForHung(t time.Duration) {
	k := &m.config
	if m.stay.state != breaker.Closed && m.stay.state != breaker.Recovering || !k.HungCalls {
		return
	}
	slice, tick, kept := modelHungSizes(k)
	now := int64(max(t, 0) / tick)
	if now <= m.pause.seen {
		return
	}
	from := time.Duration(m.pause.seen+1) * tick
	m.pause.seen = now
	if t-from >= 2*k.SlowCall+time.Second {
		m.pause.from, m.pause.to = from, t
	}
	if int64(t/slice) <= m.looked {
		return
	}
	m.looked = int64(t / slice)
	latest := t
	if t-m.pause.to < 500*time.Millisecond {
		latest = m.pause.from
	}
	oldest := min(t-kept, m.pause.counted-k.SlowCall)
	m.pause.counted = latest
	hung := int64(0)
	for _, c := range m.flying {
		ended := (c.flying/slice + 1) * slice
		if !c.used && ended > oldest && ended <= latest-k.SlowCall {
			hung++
		}
	}
	c := m.countsAt(t)
	slow, all := c.Slow+hung, c.Calls()+hung
	if hung > 0 && all >= m.minCalls() && modelReached(slow, all, k.SlowRate) {
		reason := fmt.Sprintf("%s, %d of them still in flight", modelReason("slow", slow, all, k.SlowRate), hung)
		m.open(t, "calls", reason, c)
	}
}
