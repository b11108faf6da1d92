package sim

import (
	"context"
	"errors"
	"slices"
	"time"
)

// tally counts what happens in a run.
type tally struct {
	world    *World
	fig      Figures
	traced   bool   // only calls and attempts are wanted
	calls    []Call // if traced
	attempts []Call // if traced
	openings [marks]int
	hasOpen  bool            // a guard has opened in the trouble
	waits    []time.Duration // of good calls
	sends    []time.Duration // in order
	protect  steps           // from the beginning of the trouble
	back     steps           // from its end
}

func newTally(w *World, traced bool) tally {
	if traced {
		return tally{world: w, traced: true}
	}
	seconds := (w.For + time.Second - 1) / time.Second
	return tally{world: w, fig: Figures{Series: make([]Second, seconds)}}
}

// counts reports whether something at t is counted.
func (y *tally) counts(t time.Duration) bool {
	return !y.traced && t >= y.world.Warmup && t < y.world.For
}

func (y *tally) second(t time.Duration) *Second { return &y.fig.Series[t/time.Second] }

// phase returns whether t is in the trouble, and whether it is after it.
func (y *tally) phase(t time.Duration) (meanwhile, after bool) {
	trouble := y.world.Trouble
	return trouble.holds(t), trouble != (Span{}) && t >= trouble.To
}

func (y *tally) offered(k *call) {
	if !y.counts(k.began) {
		return
	}
	y.fig.Offered++
	y.second(k.began).Offered++
	if !k.hurried {
		y.fig.OfferedUnhurried++
	}
	meanwhile, after := y.phase(k.began)
	if meanwhile {
		y.fig.OfferedMeanwhile++
	}
	if after {
		y.fig.OfferedAfter++
	}
	y.protect.at(k.began-y.world.Trouble.From).offered++
	y.back.at(k.began-y.world.Trouble.To).offered++
}

// ended counts a call by its end.
func (y *tally) ended(k *call, e ending, now time.Duration) {
	if y.traced {
		y.calls = append(y.calls, newTraced(k, k.began, e))
	}
	if !y.counts(k.began) {
		return
	}
	meanwhile, after := y.phase(k.began)
	second := y.second(k.began)
	switch {
	case k.good(e):
		y.fig.Good++
		second.Good++
		y.waits = append(y.waits, now-k.began)
		y.back.at(k.began-y.world.Trouble.To).good++
		if meanwhile {
			y.fig.GoodMeanwhile++
		}
		if after {
			y.fig.GoodAfter++
		}
	case e.refused:
		y.fig.Refused++
		second.Refused++
		if !k.hurried {
			y.fig.RefusedUnhurried++
		}
		if meanwhile {
			y.fig.RefusedMeanwhile++
		}
	default:
		y.fig.Failed++
		second.Failed++
		if meanwhile {
			y.fig.FailedMeanwhile++
		}
	}
}

// sent counts an attempt that reaches the service.
func (y *tally) sent(a *attempt) {
	if !y.counts(a.sentAt) {
		return
	}
	y.fig.Sent++
	y.second(a.sentAt).Sent++
	y.sends = append(y.sends, a.sentAt)
	if meanwhile, _ := y.phase(a.sentAt); meanwhile {
		y.fig.SentMeanwhile++
	}
	y.protect.at(a.sentAt-y.world.Trouble.From).sent++
}

// addAttempt counts the end of an attempt for its caller.
func (y *tally) addAttempt(a *attempt, opened bool) {
	if !a.sent || !y.counts(a.sentAt) {
		return
	}
	switch {
	case a.err == nil:
		y.fig.Answered++
		return
	case errors.Is(a.err, context.DeadlineExceeded), errors.Is(a.err, context.Canceled):
		y.fig.Abandoned++
	default:
		y.fig.Erroneous++
	}
	if y.hasOpen || a.sentAt < y.world.Trouble.From {
		return
	}
	y.fig.BadSentBeforeOpen++
	y.hasOpen = opened
}

// attempted notes an attempt.
func (y *tally) attempted(a *attempt, e ending) {
	if y.traced {
		c := newTraced(a.call, a.began, e)
		c.Host = a.host
		y.attempts = append(y.attempts, c)
	}
}

// refusal counts an attempt that a guard refused.
func (y *tally) refusal(now time.Duration) {
	if meanwhile, _ := y.phase(now); !meanwhile && y.counts(now) {
		y.fig.FalseRefusals++
	}
}

// addWork counts the work of a server on an attempt.
func (y *tally) addWork(a *attempt, work time.Duration) {
	if !y.counts(a.sentAt) {
		return
	}
	y.fig.Worked += work
	if a.over {
		y.fig.Wasted += work
	}
}

// figures returns the figures of the whole run.
func (y *tally) figures() Figures {
	f := y.fig
	f.Openings = y.openings[markEnd] - y.openings[markWarm]
	f.OpeningsMeanwhile = y.openings[markAfter] - y.openings[markTrouble]
	f.Crowd = largestShare(y.sends)
	f.UntilProtected, f.UntilBack = -1, -1
	if w := y.world; w.Trouble != (Span{}) {
		f.UntilProtected = y.protect.firstSecond(w.Trouble.To-w.Trouble.From, func(s step) bool { return 2*s.sent <= s.offered })
		f.UntilBack = y.back.firstSecond(w.For-w.Trouble.To, func(s step) bool { return 5*s.good >= 4*s.offered })
	}
	if n := len(y.waits); n > 0 {
		slices.Sort(y.waits)
		f.Wait, f.Slowest = y.waits[(n-1)/2], y.waits[n-1]
	}
	return f
}

// largestShare returns the largest share of times that fall into the same 10 ms.
func largestShare(times []time.Duration) float64 {
	most, first := 0, 0
	for i, t := range times {
		for t-times[first] >= 10*time.Millisecond {
			first++
		}
		most = max(most, i-first+1)
	}
	if most == 0 {
		return 0
	}
	return float64(most) / float64(len(times))
}
