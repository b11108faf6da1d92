package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/breaker"
)

// LinkConfig configures a [Link].
type LinkConfig struct {
	// Timeout is the longest that Redis may take for one decision, from 1ms to 1m, including the
	// time to connect and to wait for a connection of the pool. Default 100ms.
	Timeout time.Duration
	// Prefix is the beginning of all Redis keys. It must not contain braces. Default "weir:".
	Prefix string
	// Breaker configures the breaker of a stand-alone Redis, and of each server of a Cluster or a
	// Ring. A call fails if the server does not answer within Timeout, or answers that it cannot
	// decide anything at present. It does not fail if the caller gives up sooner, or if the answer
	// concerns a single key or slot. Change.Key is the address of the server. Classify is not used.
	// Default that of package breaker, with these differences. It also opens after 5
	// consecutive failures. It then lets one decision try Redis after 1s to 1.25s, at random, and
	// closes at once if Redis answers, because Recovery is Off.
	Breaker breaker.Config
}

const (
	defaultTimeout = 100 * time.Millisecond
	maxTimeout     = time.Minute
	defaultPrefix  = "weir:"
)

// Validate returns nil if c is valid, and otherwise an error that names every invalid field.
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

// breaker returns the config of the breakers with the defaults of this package.
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
	if b.Recovery == 0 {
		b.Recovery = breaker.Off
	}
	return b
}
