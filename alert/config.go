package alert

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"
)

// Config is how a monitor works. The zero value is a monitor that tells nobody.
type Config struct {
	// Interval is the time between evaluations, of any length. Where they take
	// longer than that, one follows the other without a pause. Default 5 s.
	Interval time.Duration
	// Budget is what one rule's own functions may take at an evaluation. A rule
	// that takes longer is left alone and has no data until it comes back; the
	// others go on. Default 1 s.
	Budget time.Duration
	// Notify are told about every alert that fires or resolves. Default nobody.
	Notify []Notifier
	// Timeout is what one attempt of a notifier may take. Default 10 s.
	Timeout time.Duration
	// Instance tells the alerts of this process from those that other processes raise by
	// the same rules: it is the label "instance" of each alert, and so part of its ID.
	// Without it one process that is well resolves, at a receiver such as Alertmanager,
	// what another one fires. It takes at most 1,024 bytes. Choose a name that a process
	// keeps when it restarts, if it has one, so that it can resolve what it fired before.
	// Two monitors of one process need different ones, or rules with different names.
	// NoInstance leaves the label out. Default the host's name and the number of the
	// process, as in "web-1:4711".
	Instance string
	// Logger is told about rules and notifiers that fail. Default slog.Default().
	Logger *slog.Logger
}

// NoInstance as Config.Instance leaves the label "instance" out: for one process alone, or for
// receivers that must not tell the processes apart.
const NoInstance = "-"

// Validate returns an error that names every field that makes no sense, and nil
// where there is none.
func (c Config) Validate() error {
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

// Validate returns everything that is wrong with a monitor of the config and the
// rules: with the config, with each rule, and rules that share a name.
func Validate(c Config, rules ...Rule) error {
	errs := []error{c.Validate()}
	seen := map[string]bool{}
	for _, r := range rules {
		errs = append(errs, r.Validate())
		if seen[r.Name] {
			errs = append(errs, fmt.Errorf("alert: rule %q: Name is not unique", r.Name))
		}
		seen[r.Name] = true
	}
	return errors.Join(errs...)
}
