package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
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
	// Admin is the path on the same host at which a handler of package admin for the same sources
	// is mounted, such as "/admin/weir/". The view of a source then has buttons, whose requests
	// that handler authorizes. The page itself stays read-only. Default none: no buttons.
	Admin string
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
	if d.Admin != "" && !validPath(d.Admin) {
		fault("Admin is %.64q, must be a path that begins and ends with a slash, such as /admin/weir/", c.Admin)
	}
	return errors.Join(errs...)
}

// validPath reports whether the path is valid in Config.Admin. A browser reads two slashes at the
// beginning as another host.
func validPath(path string) bool {
	u, err := url.Parse(path)
	return err == nil && path == u.EscapedPath() && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && strings.HasSuffix(path, "/")
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
