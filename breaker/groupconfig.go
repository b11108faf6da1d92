package breaker

import (
	"errors"
	"fmt"
)

// GroupConfig configures a [Group]. The zero value is ready to use.
type GroupConfig struct {
	// Breaker is the Config of the breaker of each key. OnChange is called for the changes of all
	// breakers, and Change.Key is the key. The changes of one breaker come one at a time and in
	// order. Changes of different breakers may come at the same time, so OnChange must be safe for
	// concurrent use. A slow call of OnChange for one key delays no other key. With Latency each
	// breaker that is used takes about 44 kB more. Group.Reconfigure replaces Breaker. Default the
	// zero Config.
	Breaker Config
	// MaxKeys is the largest number of keys, at least 1. The table has parts that fill up
	// separately, so the group may be full with some per cent fewer. A key takes about 3 kB with
	// the default window, and at most 2 kB more for its text. A string key of more than 256 bytes
	// is kept as its beginning and a digest. A key of another type that refers to more than 1,024
	// bytes of text is unguarded. Default 100,000.
	MaxKeys int
	// MaxSeries is the number of keys with metric series of their own, at most half of MaxKeys, or
	// Off for none. The keys that were added first have such series. All other keys share one set
	// of series with the key _other, whose weir.breaker.state says how many they are. A key with
	// its own series is not evicted. After 10 minutes without a call its series end, and a key in
	// use gets new series, which begin at 0. Default 100, or half of MaxKeys if that is less.
	MaxSeries int
	// MaxOpen is the largest share of the keys that may be open at once, above 0 and at most 1, so
	// that a fault of the caller itself, such as a lost network, does not open all breakers. See
	// the package comment. Group.SetMaxOpen replaces MaxOpen. Default 0: no bound.
	MaxOpen float64
}

const (
	defaultMaxKeys   = 100_000
	defaultMaxSeries = 100
)

// Validate returns an error that names every invalid field, or nil.
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
	if !(c.MaxOpen >= 0 && c.MaxOpen <= 1) {
		fs.add("MaxOpen is %v, must lie between 0 and 1", c.MaxOpen)
	}
	return errors.Join(fs...)
}

func (c GroupConfig) orDefault() GroupConfig {
	c.MaxKeys = valueOr(c.MaxKeys, defaultMaxKeys, Off)
	c.MaxSeries = valueOr(c.MaxSeries, min(defaultMaxSeries, c.MaxKeys/2), 0)
	return c
}
