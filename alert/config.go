package alert

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"
)

// Config configures a [Monitor]. The zero value is a monitor without notifiers.
type Config struct {
	// Interval is the time between evaluations, any positive duration. An evaluation that takes
	// longer is followed by the next without a pause. Default 5s.
	Interval time.Duration
	// Budget is how long the functions of one rule may take per evaluation. A rule that exceeds it
	// has no data until its functions return. Other rules are not affected. Default 1s.
	Budget time.Duration
	// Notify lists the notifiers that receive every alert that fires or resolves. Default none.
	Notify []Notifier
	// Timeout is how long one attempt of a notifier may take. Default 10s.
	Timeout time.Duration
	// Instance names this process, in at most 1,024 bytes. It is the label "instance" of each alert
	// and so part of its identity. Without the label, alerts of several processes with the same
	// rules are one alert to a receiver such as Alertmanager: a healthy process would resolve the
	// alert that another process fired. Choose a name that the process keeps when it restarts. Then
	// it can resolve the alerts that it fired before the restart. Two monitors of one process need
	// different instances, or rules with different names. "-" omits the label. Default the host
	// name and the process ID, as in "web-1:4711".
	Instance string
	// StateFile is the path of a file that keeps the alerts when the process restarts, even if it
	// was killed. The restarted process does not notify an incident again, and does not lose its
	// resolve. A notification that the process has not recorded when it ends, at most one batch per
	// notifier, may be sent twice. The state takes at most 16 MiB, and the file about twice as
	// much. It requires an Instance. Only one process at a time uses the file: a second process
	// logs an error and runs without the file until the first process ends (Unix only). If the file
	// cannot be written, alerts are delivered nevertheless. Default none.
	StateFile string
	// Logger receives the failures of rules and notifiers. Default slog.Default().
	Logger *slog.Logger
}

// noInstance is the Config.Instance that omits the label.
const noInstance = "-"

// Validate returns an error that names every invalid field of c and of the rules, including rules
// that share a name, or nil if there is none.
func (c Config) Validate(rules ...Rule) error {
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
	if c.StateFile != "" && c.Instance == "" {
		fault("StateFile needs an Instance, a name that the process keeps when it restarts")
	}
	notifiers, names := map[string]bool{}, map[string]bool{}
	for i, n := range c.Notify {
		switch {
		case n == nil:
			fault("Notify[%d] is nil", i)
		case n.Name() == "":
			fault("Notify[%d] has no name", i)
		case notifiers[n.Name()]:
			fault("Notify[%d] has the name %q, which is taken", i, n.Name())
		default:
			notifiers[n.Name()] = true
		}
	}
	for _, r := range rules {
		errs = append(errs, r.validate())
		if names[r.Name] {
			fault("rule %q: Name is not unique", r.Name)
		}
		names[r.Name] = true
	}
	return errors.Join(errs...)
}

func (c Config) orDefault() Config {
	c.Interval = cmp.Or(c.Interval, 5*time.Second)
	c.Budget = cmp.Or(c.Budget, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Instance == "" {
		c.Instance = ownInstance()
	}
	return c
}
