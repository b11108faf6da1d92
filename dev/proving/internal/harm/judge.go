package harm

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Guard is a guard whose harm is looked for.
type Guard struct {
	sim.Maker
	// Bound is the largest regret in a world in which the service answers more than half of the
	// calls.
	Bound float64
	// PerHost is true for a guard that guards each host on its own. Outages are then those of the
	// hosts.
	PerHost bool
}

// Guards returns the guards of weir, and the libraries beside them.
func Guards() []Guard {
	rows := map[string]sim.Maker{}
	for _, m := range append(guards.All(), guards.Sought()...) {
		rows[m.Name] = m
	}
	return []Guard{
		{Maker: rows[guards.Recommended], Bound: 0.05},
		{Maker: rows[guards.Weir], Bound: 0.02},
		{Maker: rows[guards.PerHost], Bound: 0.02, PerHost: true},
		{Maker: rows[guards.Queued], Bound: 0.05},
		{Maker: rows[guards.ByRate], Bound: 0.05},
		{Maker: rows["failsafe limiter"], Bound: 0.05},
	}
}

// The promises of a guard.
const (
	healthyBound = 0.001  // the largest loss of a healthy service
	healthyShare = 0.99   // of the calls of a healthy service is answered
	mostlyShare  = 0.5    // of the calls of a service that is mostly well is answered
	goalTimes    = 1.5    // the loss in outages, in those of gobreaker
	fineShare    = 0.01   // a share below needs
	fineCalls    = 20_000 // so many calls
	stuckShare   = 0.01   // of the calls at the end refused: stuck
	leastSeeds   = 3
)

// Class is how well a service is without a guard, outside of outages.
type Class int

// The classes.
const (
	Other      Class = iota // it answers at most half of the calls
	MostlyWell              // it answers more than half of the calls
	Healthy                 // it answers 99 %
)

// String returns the class in words.
func (c Class) String() string { return [...]string{"other", "mostly well", "healthy"}[c] }

// Verdict is how a guard did in a world, over all seeds.
type Verdict struct {
	Guard Guard
	// Regret is the share of the good calls of the best simple guard that this one lost, outside of
	// outages. Loss is the same in shares of the calls.
	Regret, Loss float64
	// Refused is the share of calls that the guard refused, outside of outages.
	Refused float64
	// Out is the share of calls in outages. Class is that of the rest.
	Out   float64
	Class Class
	// Calls is the number of calls outside of outages.
	Calls int
	// Unjudged is true if there are too few calls for a verdict about Loss.
	Unjudged bool
	// Harmful is true if Loss or Regret breaks the promise.
	Harmful bool
	// Stuck is the number of seeds with which the guard did not come back, or still refused 1 % of
	// the calls at the end, of Ends seeds that have an end at which the service is well.
	Stuck, Ends int
	// Back is the longest time from the end of the trouble until all calls passed, of the seeds
	// with which the guard was not stuck. Limit is how long it may take.
	Back, Limit time.Duration
	// Late is true if Back breaks that promise.
	Late bool
	// Within is the loss in outages as a share of their calls, and Worse as a multiple of what
	// gobreaker by rate loses there.
	Worse, Within float64
}

// Broken returns the promises that the guard breaks, in words.
func (v Verdict) Broken() (all []string) {
	if v.Harmful {
		all = append(all, v.Class.String())
	}
	if v.Stuck > 0 {
		all = append(all, "stuck")
	}
	if v.Late {
		all = append(all, "late")
	}
	return all
}

// judged reports whether there is a promise about the regret, and enough calls for a verdict.
func (v Verdict) judged() bool { return v.Class != Other && !v.Unjudged }

// judgedRegret returns the regret, 0 if it is not judged.
func (v Verdict) judgedRegret() float64 {
	if !v.judged() {
		return 0
	}
	return v.Regret
}

// missesGoal reports whether the guard loses much more in outages than gobreaker by rate does.
func (v Verdict) missesGoal() bool { return v.Within > fineShare && v.Worse > goalTimes }

// Judge runs guards in a world, with at least three seeds from seed on. It takes up to three more
// if there are too few calls outside of outages for a verdict about small shares.
func Judge(w sim.World, seed uint64, gs []Guard) []Verdict {
	var runs []simple
	calls := 0
	for len(runs) < leastSeeds || calls < fineCalls && len(runs) < 2*leastSeeds {
		s := newSimple(w, seed+uint64(len(runs)))
		runs = append(runs, s)
		inOutage := s.inOutage(Guard{})
		for _, c := range s.none {
			if !inOutage(c) {
				calls++
			}
		}
	}
	var all []Verdict
	for _, g := range gs {
		all = append(all, judge(w, runs, g))
	}
	return all
}

// simple is what the simple guards did with a seed.
type simple struct {
	seed    uint64
	none    []sim.Call
	byRate  []sim.Call
	out     map[place][]sim.Span
	trouble time.Duration // the end of the last one
	limit   time.Duration // of the way back from it
	ends    bool          // the service is well after that
}

var simpleGuard = func() sim.Maker {
	all := guards.Sought()
	return all[slices.IndexFunc(all, func(m sim.Maker) bool { return m.Name == guards.ByRate })]
}()

func newSimple(w sim.World, seed uint64) simple {
	s := simple{seed: seed}
	none, attempts := sim.Trace(w, sim.None(), seed)
	s.none = none
	s.byRate, _ = sim.Trace(w, simpleGuard, seed)
	counted := withoutHopeless(w, attempts)
	s.findOutages(w, counted)
	s.findEnd(w, counted)
	return s
}

// place is what a guard guards: a process, or a host of a process.
type place struct{ process, host int }

// allHosts is the host of a place with all hosts.
const allHosts = -1

// findOutages finds the outages of each place from the attempts that are not hopeless.
func (s *simple) findOutages(w sim.World, counted []sim.Call) {
	at := map[place][]sim.Call{}
	for _, a := range counted {
		for _, host := range []int{a.Host, allHosts} {
			p := place{a.Process, host}
			at[p] = append(at[p], a)
		}
	}
	s.out = map[place][]sim.Span{}
	for p, attempts := range at {
		s.out[p] = takenOut(attempts, w)
	}
	for p := range at { // an outage of the process is one of its hosts too
		spans := slices.Concat(s.out[p], s.out[place{p.process, allHosts}])
		slices.SortFunc(spans, func(a, b sim.Span) int { return cmp.Compare(a.From, b.From) })
		s.out[p] = nil
		for _, span := range spans {
			s.out[p] = join(s.out[p], span)
		}
	}
}

// hopeless reports whether hurried calls are hopeless: they allow less than the usual time of a
// call.
func hopeless(w sim.World) bool {
	c := w.Clients[0]
	return c.HurriedShare > 0 && c.Hurried < quantile(w.Service.Time, 0.5)
}

// withoutHopeless returns the attempts that are not hopeless. The failures of the others say
// nothing about the service.
func withoutHopeless(w sim.World, attempts []sim.Call) []sim.Call {
	if !hopeless(w) {
		return attempts
	}
	return slices.DeleteFunc(slices.Clone(attempts), func(c sim.Call) bool { return c.Hurried })
}

// findEnd finds out when the trouble is over, and whether the service is well then. The attempts
// are those that are not hopeless.
func (s *simple) findEnd(w sim.World, counted []sim.Call) {
	for _, f := range w.Faults {
		if f.To < w.For || f.From > 0 {
			s.trouble = max(s.trouble, f.To)
		}
	}
	for _, surge := range w.Clients[0].Surge {
		s.trouble = max(s.trouble, surge.To)
	}
	for _, o := range outages(counted) {
		s.trouble = max(s.trouble, o.To)
	}
	s.limit = wayBack(counted, s.trouble, w.Service.RetryAfter, w.Clients[0].Processes)
	n, good := 0, 0
	for _, c := range counted {
		if c.Began >= s.trouble {
			n++
			if c.End == sim.Good {
				good++
			}
		}
	}
	s.ends = n > 5*minCalls && float64(good) >= healthyShare*float64(n) && s.trouble+s.limit+window < w.For
}

// judge compares a guard with the simple ones.
func judge(w sim.World, runs []simple, g Guard) Verdict {
	v := Verdict{Guard: g}
	var in, out sums
	isHopeless := hopeless(w)
	hopeful, answered := 0, 0
	for _, s := range runs {
		own := s.byRate
		if g.Name != guards.ByRate {
			own, _ = sim.Trace(w, g.Maker, s.seed)
		}
		inOutage := s.inOutage(g)
		for i, c := range s.none {
			if inOutage(c) {
				in.add(c, s.byRate[i], own[i])
				continue
			}
			out.add(c, s.byRate[i], own[i])
			if c.Hurried && isHopeless {
				continue
			}
			hopeful++
			if c.End == sim.Good {
				answered++
			}
		}
		v.judgeEnd(w, s, own)
	}
	if hopeful > 0 {
		switch share := float64(answered) / float64(hopeful); {
		case share >= healthyShare:
			v.Class = Healthy
		case share > mostlyShare:
			v.Class = MostlyWell
		}
	}
	v.compare(in, out)
	return v
}

// inOutage returns a function that reports whether a call is taken out. It must be called for the
// calls in order.
func (s *simple) inOutage(g Guard) func(sim.Call) bool {
	at := map[place]func(time.Duration) bool{}
	return func(c sim.Call) bool {
		p := place{c.Process, allHosts}
		if g.PerHost {
			p.host = c.Host
		}
		if at[p] == nil {
			at[p] = covers(s.out[p])
		}
		return at[p](c.Began)
	}
}

// sums are the good calls of three guards.
type sums struct{ calls, none, byRate, own, refused int }

func (s *sums) add(none, byRate, own sim.Call) {
	s.calls++
	count := func(n *int, c sim.Call) {
		if c.End == sim.Good {
			*n++
		}
	}
	count(&s.none, none)
	count(&s.byRate, byRate)
	count(&s.own, own)
	if own.End == sim.Refused {
		s.refused++
	}
}

// compare computes what was lost inside and outside of outages.
func (v *Verdict) compare(in, out sums) {
	v.Calls = out.calls
	v.Out = ratio(in.calls, in.calls+out.calls)
	v.Refused = ratio(out.refused, out.calls)
	best := max(out.none, out.byRate)
	v.Regret, v.Loss = ratio(best-out.own, best), ratio(best-out.own, out.calls)
	v.Within, v.Worse = ratio(in.none-in.own, in.calls), ratio(in.none-in.own, in.none-in.byRate)
	v.Unjudged = v.Calls < fineCalls && v.Regret < fineShare
	switch v.Class {
	case Healthy:
		v.Harmful = !v.Unjudged && v.Loss > healthyBound
	case MostlyWell:
		v.Harmful = !v.Unjudged && v.Regret > v.Guard.Bound
	case Other:
	}
}

func ratio(a, b int) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// judgeEnd judges what the guard did after the last trouble.
func (v *Verdict) judgeEnd(w sim.World, s simple, own []sim.Call) {
	if !s.ends {
		return
	}
	v.Ends++
	n, refused := 0, 0
	last := (s.trouble + s.limit + w.For) / 2
	for _, c := range own {
		if c.Began >= last {
			n++
			if c.End == sim.Refused {
				refused++
			}
		}
	}
	b := back(own, s.trouble)
	if b < 0 || float64(refused) >= stuckShare*float64(n) && refused > 2 {
		v.Stuck++
		return
	}
	v.Late = v.Late || b > s.limit
	if b > v.Back {
		v.Back, v.Limit = b, s.limit
	}
}
