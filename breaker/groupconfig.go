package breaker

import (
	"errors"
	"fmt"
)

// GroupConfig says what the breakers of a [Group] are like, and how many there are.
// The zero value is sensible.
type GroupConfig struct {
	// Breaker is the config of each member. Its OnChange is called for the changes of all
	// members; Change.Key says whose. Changes of one member come one at a time and in their
	// order. Those of several members may come at the same time, so OnChange must be safe for
	// concurrent use; a call that is slow for one member delays no other. With Latency each
	// member that is called takes some forty kilobytes. Group.Reconfigure replaces Breaker.
	Breaker Config
	// MaxKeys is the most members that the group has. Parts of it fill up apart, so it may
	// be some per cent fewer. A member takes about 3 KB with the default window, and at most
	// 2 KB more for its key. A string key of more than 256 bytes is kept as its beginning and a
	// digest. Another key that refers to more than 1,024 bytes of text passes unguarded.
	// Default 10,000.
	MaxKeys int
	// MaxSeries is how many keys have series of their own in metrics, up to MaxKeys: those
	// that came first. The others share one set of series, with the key _other. A key that
	// has had no call for 10 minutes loses its series to one that is in use: its series
	// end, and those of the other begin at 0. Off gives none its own. Default 100, or half
	// of MaxKeys where that is less.
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
