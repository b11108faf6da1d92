package breaker

import (
	"errors"
	"fmt"
	"time"
)

// GroupConfig says what the breakers of a [Group] are like, and how many there are.
// The zero value is sensible.
type GroupConfig struct {
	// Breaker is the config of each member. Its OnChange is told of the changes of all
	// members, and of which by Change.Key. With Latency each member that is called takes
	// some forty kilobytes.
	Breaker Config
	// MaxKeys is the most members that the group has. Parts of it fill up apart, so it may
	// be some per cent fewer. What was let go and is in use again while there is no room
	// is kept beside them: MaxKeys more at most, but for breakers that others hold. A member
	// takes about 3 KB with the default window. Default 10,000.
	MaxKeys int
	// MaxSeries is how many members have series of their own in metrics, up to MaxKeys:
	// those of the first keys, which are kept for good, so that no series ends. The
	// others share one set of series, with the key _other. Off gives none its own.
	// Default 100, or half of MaxKeys where that is less.
	MaxSeries int
}

const (
	defaultMembers = 10_000
	defaultSeries  = 100
)

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c GroupConfig) Validate() error {
	var fs faults
	if err := c.Breaker.Validate(); err != nil {
		fs = append(fs, fmt.Errorf("breaker: Breaker: %w", err))
	}
	if c.MaxKeys < 0 {
		fs.add("MaxKeys is %d, must be at least 1", c.MaxKeys)
	}
	if c.MaxSeries < Off || c.MaxKeys >= 0 && c.MaxSeries > c.orDefault().MaxKeys {
		fs.add("MaxSeries is %d, must be at least 1 and at most MaxKeys, or Off", c.MaxSeries)
	}
	return errors.Join(fs...)
}

func (c GroupConfig) orDefault() GroupConfig {
	c.MaxKeys = either(c.MaxKeys, defaultMembers, Off)
	c.MaxSeries = either(c.MaxSeries, min(defaultSeries, c.MaxKeys/2), 0)
	return c
}

// rest is for how long nobody may have asked for a member before it is let go: as long
// as its window is, so that a call that was made then has ended, or takes longer than
// what counts in its window.
func (r *rules) rest() time.Duration { return either(r.config.Window, 10*time.Second, Off) }
