package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
)

// LinkConfig says how a [Link] is used.
type LinkConfig struct {
	// Timeout is the longest that Redis may take for one decision, from 1 ms to a minute; with what it takes to
	// connect, and to wait for a connection of the pool. Default 100 ms.
	Timeout time.Duration
	// Prefix stands before all keys, and has no braces. Default "weir:".
	Prefix string
	// Breaker is before Redis, and of a Cluster or a Ring before each server. It sees a failure where the server does not answer within
	// Timeout, or says that it can decide nothing at present. That a caller gave up sooner is none, nor is what concerns
	// one key or one slot. Its OnChange is told the address by Change.Key. Classify is not used. Default: that
	// of the package breaker, but it opens at 5 failures in a row too, and has one decision try again about once a second (after
	// 1 s to 1.25 s, at random), which closes it if Redis answers.
	Breaker breaker.Config
}

const (
	defaultTimeout = 100 * time.Millisecond
	maxTimeout     = time.Minute
	defaultPrefix  = "weir:"
)

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c LinkConfig) Validate() error {
	faults := []error{c.breaker().Validate()}
	if c.Timeout != 0 && (c.Timeout < time.Millisecond || c.Timeout > maxTimeout) {
		faults = append(faults, fmt.Errorf("fleet: Timeout is %s, must lie between 1ms and %s (or be 0 for the default)", c.Timeout, maxTimeout))
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		faults = append(faults, fmt.Errorf("fleet: Prefix is %q, must have no braces", c.Prefix))
	}
	return errors.Join(faults...)
}

// breaker is the breaker's config with the defaults of this package.
func (c LinkConfig) breaker() breaker.Config {
	b := c.Breaker
	if b.ConsecutiveFailures == 0 {
		b.ConsecutiveFailures = 5
	}
	if b.Cooldown == 0 {
		b.Cooldown = 1250 * time.Millisecond
		if b.CooldownJitter == 0 {
			b.CooldownJitter = 0.2
		}
	}
	if b.Probes == 0 {
		b.Probes = 1
	}
	return b
}
