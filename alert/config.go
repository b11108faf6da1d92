package alert

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"
)

// Config configures a [Monitor]. The zero value is a monitor that tells nobody.
type Config struct {
	// Interval is the time between evaluations, of any length. If evaluations take longer, they
	// follow each other without a pause. Default 5s.
	Interval time.Duration
	// Budget is how long the functions of one rule may take at an evaluation. A rule that takes
	// longer has no data until its functions return; the other rules go on. Default 1s.
	Budget time.Duration
	// Notify are told of every alert that fires or resolves. Default none.
	Notify []Notifier
	// Timeout is how long one attempt of a notifier may take. Default 10s.
	Timeout time.Duration
	// Instance names this process. It is the label "instance" of each alert and so part of its
	// identity: without it, a process without faults resolves what another process fires by the
	// same rules, at a receiver such as Alertmanager. It takes at most 1,024 bytes. Choose a name
	// that the process keeps when it restarts, so that it can resolve what it fired before. Two
	// monitors of one process need different ones, or rules with different names. "-" leaves the
	// label out. Default the host name and the process number, as in "web-1:4711".
	Instance string
	// Logger is told of rules and notifiers that fail. Default slog.Default().
	Logger *slog.Logger
}

// noInstance is the Config.Instance of alerts without the label.
const noInstance = "-"

func (c Config) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("alert: "+format, args...)) }
	if c.Interval < 0 {
		fault("Interval is %v, must be at least 0", c.Interval)
	}
	if c.Budget < 0 {
		fault("Budget is %v, must be at least 0", c.Budget)
	}
	if c.Timeout < 0 {
		fault("Timeout is %v, must be at least 0", c.Timeout)
	}
	if !utf8.ValidString(c.Instance) || len(c.Instance) > maxLabel {
		fault("Instance is %.100q, must be UTF-8 and take at most %d bytes", c.Instance, maxLabel)
	}
	seen := map[string]bool{}
	for i, n := range c.Notify {
		switch {
		case n == nil:
			fault("Notify[%d] is nil", i)
		case n.Name() == "":
			fault("Notify[%d] has no name", i)
		case seen[n.Name()]:
			fault("Notify[%d] has the name %q, as has one before it", i, n.Name())
		default:
			seen[n.Name()] = true
		}
	}
	return errors.Join(errs...)
}

func (c Config) orDefault() Config {
	if c.Interval == 0 {
		c.Interval = 5 * time.Second
	}
	if c.Budget == 0 {
		c.Budget = time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Instance == "" {
		c.Instance = ownInstance()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate returns an error that names all faults of the config and of the rules, including rules
// that share a name, or nil if there are none.
func Validate(c Config, rules ...Rule) error {
	errs := []error{c.validate()}
	seen := map[string]bool{}
	for _, r := range rules {
		errs = append(errs, r.validate())
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("alert: rule %q: Name is not unique", r.Name))
		}
		seen[r.Name] = true
	}
	return errors.Join(errs...)
}
