package dashboard

import "time"

// track follows the state of a line through the samples.
type track struct {
	last   []stage
	state  string
	since  time.Time // zero if not known
	atMost bool      // the state began at since or later
}

// change is what is known to have happened to a state between two samples.
type change struct {
	at       time.Time
	atMost   bool // it was then or later
	from, to string
	by       []stage // the states entered on the way, and how often
}

// step takes in what a sample at a time says, and tells whether it shows a change.
//
// Between two samples any number of transitions may have happened. What they were
// follows from the counts of states entered and the time spent in each.
func (t *track) step(stages []stage, now stage, at time.Time) (c change, changed bool) {
	entered, sane := t.entered(stages)
	before := *t
	t.last, t.state = stages, now.name
	if before.last == nil || !sane {
		t.since, t.atMost = firstSince(stages, now, at)
		return c, false
	}
	if len(entered) == 0 && now.name == before.state {
		return c, false
	}

	t.since, t.atMost = at, false
	if spent := now.spent - before.find(now.name).spent; now.spent > 0 {
		// Entered once from elsewhere, all the time that it has gained is of this stay.
		t.since = at.Add(-seconds(spent))
		t.atMost = before.state == now.name || times(entered, now.name) != 1
	}
	return change{at: t.since, atMost: t.atMost, from: before.state, to: now.name, by: less(entered, now.name)}, true
}

// entered lists the states entered since the last sample, with the number of times
// in the place of the total. It is not sane if a total has shrunk: then another
// source has taken the name.
func (t *track) entered(stages []stage) (list []stage, sane bool) {
	for _, s := range stages {
		n := s.entered - t.find(s.name).entered
		if n < 0 {
			return nil, false
		}
		if n > 0 {
			list = append(list, stage{name: s.name, entered: n})
		}
	}
	return list, true
}

func (t *track) find(name string) stage {
	for _, s := range t.last {
		if s.name == name {
			return s
		}
	}
	return stage{}
}

// firstSince says since when a state has lasted that is seen for the first time.
// The time spent in it is that of one stay if it was never entered, which is the
// state that all began with, or once and something else was the beginning.
func firstSince(stages []stage, now stage, at time.Time) (since time.Time, atMost bool) {
	if now.spent <= 0 {
		return time.Time{}, false
	}
	once := now.entered == 0
	if now.entered == 1 {
		for _, s := range stages {
			once = once || s.name != now.name && s.entered == 0 && s.spent > 0
		}
	}
	return at.Add(-seconds(now.spent)), !once
}

func times(list []stage, name string) float64 {
	for _, s := range list {
		if s.name == name {
			return s.entered
		}
	}
	return 0
}

// less takes one entry of the state out of the list.
func less(list []stage, name string) (rest []stage) {
	for _, s := range list {
		if s.name == name {
			s.entered--
		}
		if s.entered > 0 {
			rest = append(rest, s)
		}
	}
	return rest
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
