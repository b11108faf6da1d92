package breaker

import (
	"errors"
	"fmt"
)

// GroupConfig configures a [Group]. The zero value is ready to use.
type GroupConfig struct {
	// Breaker is the config of each key's breaker. OnChange is called for the changes of all of them;
	// Change.Key is the key. Changes of one breaker come one at a time and in order. Those of several
	// breakers may come at the same time, so OnChange must be safe for concurrent use; a call that is
	// slow for one key delays no other. With Latency a breaker that is called takes about 44 KB more.
	// Group.Reconfigure replaces Breaker. Default that of Config.
	Breaker Config
	// MaxKeys is the most keys that the group has. The table has parts that fill up separately, so
	// the most may be some per cent fewer. A key takes about 3 KB with the default window, and at most
	// 2 KB more for its text. A string key of more than 256 bytes is kept as its beginning and a
	// digest. Another key that refers to more than 1,024 bytes of text passes unguarded.
	// Default 10,000.
	MaxKeys int
	// MaxSeries is how many keys have series of their own in metrics, up to half of MaxKeys: those
	// that were added first. The others share one set of series, with the key _other. A key with
	// series of its own is not evicted. If it has had no call for 10 minutes it loses them to a key
	// that is in use: its series end, and those of the other begin at 0. Off gives no key its own.
	// Default 100, or half of MaxKeys where that is less.
	MaxSeries int
}

const (
	defaultMembers = 10_000
	defaultSeries  = 100
)

// Validate returns an error that names every field that is out of bounds, or nil if there is none.
func (c GroupConfig) Validate() error {
	var fs faults
	if err := c.Breaker.Validate(); err != nil {
		fs = append(fs, fmt.Errorf("breaker: Breaker: %w", err))
	}
	if c.MaxKeys < 0 {
		fs.add("MaxKeys is %d, must be at least 1", c.MaxKeys)
	}
	if c.MaxSeries < Off || c.MaxKeys >= 0 && c.MaxSeries > c.orDefault().MaxKeys/2 {
		fs.add("MaxSeries is %d, must be at least 1 and at most half of MaxKeys, or Off", c.MaxSeries)
	}
	return errors.Join(fs...)
}

func (c GroupConfig) orDefault() GroupConfig {
	c.MaxKeys = either(c.MaxKeys, defaultMembers, Off)
	c.MaxSeries = either(c.MaxSeries, min(defaultSeries, c.MaxKeys/2), 0)
	return c
}
