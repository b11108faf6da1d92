package dashboard

import (
	"errors"
	"fmt"
	"time"
)

// Config configures a [Page]. The zero value is ready to use.
type Config struct {
	// Title is shown on the page, such as the name of the program. Default "weir".
	Title string
	// Interval is the time between samples while the page is open in a browser, from 100ms to 1m.
	// Default 1s.
	Interval time.Duration
	// History is the time span of the charts, from Interval to 3,600 times Interval. Default 5m,
	// but at least one interval and at most 3,600.
	History time.Duration
	// Hosts are the host names under which the page may be requested, without a port. Addresses,
	// localhost and names without a dot are always allowed, and "*" allows all names. A request for
	// another name gets 403. Set Hosts if a proxy on the same machine passes on the name. Default
	// all names, but none for requests over the loopback interface, where DNS rebinding would let a
	// website read the page.
	Hosts []string
}

const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
	maxSamples  = 3600
)

// Validate returns an error that names every invalid field, or nil.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("dashboard: "+format, args...)) }
	d := c.orDefault()
	if d.Interval < minInterval || d.Interval > maxInterval {
		fault("Interval is %v, must be from %v to %v", c.Interval, minInterval, maxInterval)
	} else if d.History < d.Interval || d.History > maxSamples*d.Interval {
		fault("History is %v, must be from %v to %v where the interval is %v", d.History, d.Interval, maxSamples*d.Interval, d.Interval)
	}
	for n, name := range d.Hosts {
		if !validHost(name) {
			fault("Hosts[%d] is %.64q, must be a name without a port, or \"*\"", n, name)
		}
	}
	return errors.Join(errs...)
}

func (c Config) orDefault() Config {
	if c.Title == "" {
		c.Title = "weir"
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.History == 0 {
		c.History = max(min(5*time.Minute, maxSamples*c.Interval), c.Interval)
	}
	return c
}
