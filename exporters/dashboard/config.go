package dashboard

import (
	"errors"
	"fmt"
	"time"
)

// Config configures a [Page]. The zero value is ready to use.
type Config struct {
	// Title is shown on the page: the name of the program or of its place. Default "weir".
	Title string
	// Interval is the time between two samples while the page is open somewhere, from 100ms to 1m.
	// Default 1s.
	Interval time.Duration
	// History is how far the charts reach back, from Interval to 3,600 times Interval. Default 5m,
	// or 3,600 intervals if those are shorter.
	History time.Duration
	// Hosts are the names by which the page may be requested, without a port, besides addresses,
	// localhost and names without a dot. A request for another name gets 403; "*" stands for all
	// names. Set it if a proxy on the same machine passes names on. Default all names, except for
	// requests over the loopback interface, where a website could pass its own name off as this
	// machine's.
	Hosts []string
}

const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
	maxSamples  = 3600
)

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
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
		if !isHost(name) {
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
