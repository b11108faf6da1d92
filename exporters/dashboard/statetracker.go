package dashboard

import "time"

// stateTracker follows the state of an entry from sample to sample.
type stateTracker struct {
	last   []stateStats
	state  string
	since  time.Time // zero if unknown
	atMost bool      // the state began at since or later
}

// change is a change of state between two samples.
type change struct {
	at       time.Time
	atMost   bool // the change was at that time or later
	from, to string
	by       []stateStats // the states entered in between, and how often
}

// advance applies the states of a sample and returns the change, if there was one. Between two
// samples there may be any number of transitions. They follow from how often each state was entered
// and how long it lasted.
func (t *stateTracker) advance(stages []stateStats, now stateStats, at time.Time) (c change, changed bool) {
	entered, ok := t.enteredSince(stages)
	before := *t
	t.last, t.state = stages, now.name
	if before.last == nil || !ok {
		t.since, t.atMost = stateStart(stages, now, at)
		return c, false
	}
	if len(entered) == 0 && now.name == before.state {
		return c, false
	}

	t.since, t.atMost = at, false
	if spent := now.spent - before.lastStats(now.name).spent; now.spent > 0 {
		// If the state was entered once, from another state, all of its added time is since then.
		t.since = at.Add(-secondsToDuration(spent))
		t.atMost = before.state == now.name || timesEntered(entered, now.name) != 1
	}
	return change{at: t.since, atMost: t.atMost, from: before.state, to: now.name, by: removeOneEntering(entered, now.name)}, true
}

// enteredSince returns the states entered since the last sample, and how often. ok is false if a
// total has fallen, because another source has taken the name.
func (t *stateTracker) enteredSince(stages []stateStats) (list []stateStats, ok bool) {
	for _, s := range stages {
		n := s.entered - t.lastStats(s.name).entered
		if n < 0 {
			return nil, false
		}
		if n > 0 {
			list = append(list, stateStats{name: s.name, entered: n})
		}
	}
	return list, true
}

func (t *stateTracker) lastStats(name string) stateStats {
	for _, s := range t.last {
		if s.name == name {
			return s
		}
	}
	return stateStats{}
}

// stateStart returns when the state began that the first sample shows. A sample says only how long
// the breaker has been in each state in total. That is exact if the breaker was in this state once.
// If it was there several times, the state began later than the time returned, and atMost is true.
func stateStart(stages []stateStats, now stateStats, at time.Time) (since time.Time, atMost bool) {
	if now.spent <= 0 {
		return time.Time{}, false
	}
	once := now.entered == 0
	if now.entered == 1 {
		for _, s := range stages {
			once = once || s.name != now.name && s.entered == 0 && s.spent > 0
		}
	}
	return at.Add(-secondsToDuration(now.spent)), !once
}

func timesEntered(list []stateStats, name string) float64 {
	for _, s := range list {
		if s.name == name {
			return s.entered
		}
	}
	return 0
}

// removeOneEntering returns the list with the state entered once less.
func removeOneEntering(list []stateStats, name string) (rest []stateStats) {
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

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
