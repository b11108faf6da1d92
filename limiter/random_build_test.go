package limiter_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// build creates all limiters. Some are part of Joints, and some are also used through a Joint of
// one.
func (w *randomTest) build() {
	w.grain = []time.Duration{ms, 1}[w.seed%2]
	log := w.addWindow("log", limiter.WindowConfig{Limit: 6, Window: 2 * sec})
	counting := w.addWindow("counting log", limiter.WindowConfig{Limit: 3, Window: sec, CountRefused: true})
	fixed := w.addWindow("fixed", limiter.WindowConfig{Limit: 5, Window: sec, CountRefused: w.seed%3 == 0})
	sliding := w.addWindow("sliding", limiter.WindowConfig{Limit: 8, Window: sec, CountRefused: w.seed%3 == 1})
	bucket := w.addBucket("bucket")
	keys := w.addGroup("key", 4, 100)
	w.addGroup("crowded key", 4, 3)
	w.addReservedBucket()
	one := w.addJoint("joint", bucket, log)
	w.addJoint("joint of a joint", one, counting, keys[0])
	w.addJoint("joint of windows", fixed, sliding, counting)
	w.addPacers()
	for _, s := range w.subjects {
		if l, ok := s.waiters[0].(limiter.TimedLimiter); ok && len(s.takers) > 0 {
			named := limiter.NewJoint(s.name, l)
			twice := limiter.NewJoint(s.name, named)
			s.takers, s.waiters = append(s.takers, named, twice), append(s.waiters, named, twice)
		}
	}
}

func (w *randomTest) add(s *testedLimiter, l waitingLimiter) *testedLimiter {
	s.takers, s.waiters = append(s.takers, l), append(s.waiters, l)
	w.subjects = append(w.subjects, s)
	return s
}

func (w *randomTest) addWindow(name string, c limiter.WindowConfig) *testedLimiter {
	o := &windowOracle{limit: c.Limit, counts: c.CountRefused}
	c.Name = w.nameOrNone(name)
	var l waitingLimiter
	switch name {
	case "fixed":
		l = limiter.NewFixedWindow(c)
		o.since = func(at time.Duration) time.Duration { return at / c.Window * c.Window }
		o.part = o.since
	case "sliding":
		l = limiter.NewSlidingWindow(limiter.WindowConfig{Limit: c.Limit, Window: c.Window, CountRefused: c.CountRefused, Name: c.Name})
		width := c.Window / 10
		o.part = func(at time.Duration) time.Duration { return at / width * width }
		o.since = func(at time.Duration) time.Duration { return o.part(at) - c.Window }
	default:
		l = limiter.NewSlidingLog(c)
		o.since = func(at time.Duration) time.Duration { return at - c.Window + 1 }
	}
	s := &testedLimiter{limiterNode: &limiterNode{name: name, of: o, most: func() int { return c.Limit }}}
	s.refundAt = func(taken time.Duration, n int) {
		if taken < 0 {
			return
		}
		l.Take(0) // moves both to the current time
		o.room(w.now())
		o.refundAt(taken, n)
		limiter.RefundAt(l, w.began.Add(taken), n)
	}
	return w.add(s, l)
}

// nameOrNone gives some limiters a name. Statistics must not change a decision.
func (w *randomTest) nameOrNone(name string) string {
	if w.IntN(2) == 0 {
		return ""
	}
	return name
}

// tokenIntervals lists the intervals between tokens.
var tokenIntervals = []time.Duration{10 * ms, 100 * ms, 300 * ms, sec, 20 * sec}

func (w *randomTest) addBucket(name string) *testedLimiter {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, 100*ms), Burst: 10, Name: w.nameOrNone(name)})
	o := newLevelOracle(100*ms, 10)
	interval := 100 * ms
	s := &testedLimiter{limiterNode: &limiterNode{name: name, of: o, most: func() int { return int(o.burst) }}}
	s.hold = func(d time.Duration) {
		o.hold(w.now(), d)
		b.Hold(d)
	}
	s.change = func() {
		if w.IntN(2) == 0 {
			interval = tokenIntervals[w.IntN(len(tokenIntervals))]
			o.set(w.now(), interval, int(o.burst))
			w.check(b.SetRate(limiter.Per(1, interval)) == nil, "SetRate")
			return
		}
		burst := 3 + w.IntN(10)
		o.set(w.now(), interval, burst)
		w.check(b.SetBurst(burst) == nil, "SetBurst")
	}
	return w.add(s, b)
}

// addGroup creates some keys of a group. If there are more keys than MaxKeys, one has no room.
func (w *randomTest) addGroup(name string, keys, most int) (all []*testedLimiter) {
	const burst = 4
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, 100*ms), Burst: burst, MaxKeys: most})
	crowded := keys > most
	// The bucket of a key that was held may be in its hold, beside the table. Then another key
	// keeps its place in the table, and no simple oracle knows which.
	holds := !crowded || w.seed%2 == 0
	var oracles []*levelOracle
	interval, now := 100*ms, burst
	for key := range keys {
		l, o := g.Get(key), newLevelOracle(100*ms, burst)
		oracles = append(oracles, o)
		s := &testedLimiter{limiterNode: &limiterNode{name: fmt.Sprint(name, " ", key), of: o, most: func() int { return now }}}
		if key < most && holds { // further keys cannot be held
			s.hold = func(d time.Duration) {
				o.hold(w.now(), d)
				l.Hold(d)
			}
		}
		s.change = func() {
			if !crowded {
				now = 2 + w.IntN(6)
			}
			for range 1 + w.IntN(2) { // sometimes twice at the same time
				interval = tokenIntervals[w.IntN(len(tokenIntervals))]
				for _, o := range oracles {
					o.set(w.now(), interval, now)
				}
				w.check(g.SetLimits(limiter.Tier{Rate: limiter.Per(1, interval), Burst: now}) == nil, "SetLimits")
			}
		}
		if crowded {
			s.full = func(at, doubt time.Duration) bool {
				return (doubt > 0 || !holds) && otherKeysInUse(oracles, key, at, doubt) >= most
			}
		} else {
			l.Take(1) // the group remembers the key
			limiter.Refund(l, 1)
		}
		all = append(all, w.add(s, l))
	}
	return all
}

// otherKeysInUse returns how many other keys are in use, if the key is idle and may have been
// evicted; otherwise 0. A key that was held is in use until its bucket is full again. A key that
// became full less than doubt ago counts as in use.
func otherKeysInUse(all []*levelOracle, key int, at, doubt time.Duration) (inUse int) {
	for i, o := range all {
		o.advance(at)
		switch idle := o.level > o.burst-roundingError; {
		case i == key && (!idle || at < o.until || !math.IsInf(o.ceilingAt(at), 1)):
			return 0
		case i != key && (!idle || at-o.filled < doubt):
			inUse++
		}
	}
	return inUse
}

// addJoint joins limiters that are also used directly.
func (w *randomTest) addJoint(name string, of ...*testedLimiter) *testedLimiter {
	s := &testedLimiter{limiterNode: &limiterNode{name: name}}
	var members []limiter.Limiter
	for _, m := range of {
		s.below = append(s.below, m.limiterNode)
		if w.IntN(2) == 0 {
			members = append(members, m.takers[0])
		} else {
			members = append(members, limiter.NewJoint("member", m.takers[0]))
		}
	}
	s.most = func() int {
		least := of[0].most()
		for _, m := range of {
			least = min(least, m.most())
		}
		return least
	}
	j := limiter.NewJoint("", members...)
	s.hold = func(d time.Duration) {
		s.limiterNode.hold(w.now(), d)
		j.Hold(d)
	}
	if name != "joint of windows" {
		return w.add(s, j)
	}
	s.refundAt = func(taken time.Duration, n int) {
		if taken < 0 {
			return
		}
		j.Take(0)
		for _, m := range of {
			m.room(w.now())
			m.of.(*windowOracle).refundAt(taken, n)
		}
		limiter.RefundAt(j, w.began.Add(taken), n)
	}
	return w.add(s, j)
}

// addPacers creates a leaky bucket, and a pacer with almost no stored permits, which behaves
// the same.
func (w *randomTest) addPacers() {
	leaky := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(4), Capacity: 1000})
	w.subjects = append(w.subjects, &testedLimiter{
		limiterNode: &limiterNode{name: "leaky", of: &leakyOracle{every: 250 * ms, grain: 1}, most: func() int { return 4 }},
		waiters:     []limiter.WaitLimiter{leaky},
	})
	smooth := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4), MaxBurst: 1})
	o := &leakyOracle{every: 250 * ms, grain: us}
	s := &testedLimiter{limiterNode: &limiterNode{name: "smooth", of: o, most: func() int { return 4 }}, waiters: []limiter.WaitLimiter{smooth}, foreign: true}
	s.change = func() {
		o.every = time.Duration(1+w.IntN(5)) * 100 * ms
		w.check(smooth.SetRate(limiter.Per(1, o.every)) == nil, "SetRate")
	}
	s.reserve = func() {
		at, limit := w.now(), w.randomTime()
		wait, ok := smooth.Reserve(2, limit)
		owes := max(o.free-at/us*us, 0)
		w.check(ok == (owes <= limit), "smooth: Reserve within %s of %s: %t", limit, owes, ok)
		if ok {
			w.check(wait == owes, "smooth: Reserve of %s: %s", owes, wait)
			o.take(at, 2)
		}
	}
	w.subjects = append(w.subjects, s)
}
