package throttle

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// Reconfigure replaces the Config. Later calls are decided by the new Config alone, based on the
// calls in the window. If Window changes, the new window begins empty, so that no call is refused
// until MinCalls calls have come. Totals are kept, and calls in flight count. If c is invalid,
// Reconfigure returns the error of c.Validate and changes nothing.
func (t *Throttle) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return t.set.Change(func() error {
		t.change(func(now *Config) { *now = c.orDefault() })
		return nil
	})
}

// setting is a Config, and the calls that were counted under it and under earlier ones. It never
// changes.
type setting struct {
	config Config // with its defaults
	tally  *tally.Calls
	recent []endedTally
	past   tally.Counts // of earlier tallies
}

// endedTally is a tally of a window that has ended. A goroutine that loaded the setting before may
// still record to the tally.
type endedTally struct {
	tally *tally.Calls
	at    time.Duration
}

// recordingTime is longer than a goroutine takes from loading the setting to recording a call.
const recordingTime = time.Minute

func newSetting(c Config) *setting {
	width := (c.Window + buckets - 1) / buckets
	return &setting{config: c, tally: tally.New(width, buckets, math.MaxInt64)}
}

// withConfig returns the setting with another config.
func (s *setting) withConfig(c Config, at time.Duration) *setting {
	if c.Window == s.config.Window {
		next := *s
		next.config = c
		return &next
	}
	return s.withWindow(c, at)
}

// withWindow is withConfig for a window that begins empty. Of windows that ended long ago, only the
// totals are kept.
func (s *setting) withWindow(c Config, at time.Duration) *setting {
	next := newSetting(c)
	next.tally.BeginAt(at)
	next.past = s.past
	for _, e := range s.recent {
		if at-e.at < recordingTime {
			next.recent = append(next.recent, e)
		} else {
			next.past = next.past.Plus(e.tally.Totals())
		}
	}
	next.recent = append(next.recent, endedTally{s.tally, at})
	return next
}

// totals returns the calls of all windows.
func (s *setting) totals() tally.Counts {
	sum := s.past.Plus(s.tally.Totals())
	for _, e := range s.recent {
		sum = sum.Plus(e.tally.Totals())
	}
	return sum
}
