package breaker

import (
	"cmp"
	"math"
	"time"
)

// orDefault returns c with defaults for zero fields. Each Off becomes the value that has no effect.
func (c Config) orDefault() Config {
	c.FailureRate = valueOr(c.FailureRate, 0.5, Off)
	c.SlowRate = valueOr(c.SlowRate, 0.5, Off)
	if c.SlowCall == 0 {
		c.SlowRate, c.SlowCall = Off, math.MaxInt64
	}
	c.ConsecutiveFailures = valueOr(c.ConsecutiveFailures, math.MaxInt, Off)
	c.MinCalls = valueOr(c.MinCalls, 20, Off)
	if c.LastCalls == 0 {
		c.Window = valueOr(c.Window, 10*time.Second, Off)
		c.Buckets = valueOr(c.Buckets, 10, Off)
	}
	c.FailureRun = valueOr(c.FailureRun, c.defaultRun(), math.MaxInt)
	c.Cooldown = valueOr(c.Cooldown, time.Second, 0)
	c.CooldownFactor = valueOr(c.CooldownFactor, 1, Off)
	c.MaxCooldown = valueOr(c.MaxCooldown, max(5*time.Minute, c.Cooldown), Off)
	c.MaxRetryAfter = valueOr(c.MaxRetryAfter, time.Minute, 0)
	c.Recovery = valueOr(c.Recovery, 20*time.Second, 0)
	c.Probes = valueOr(c.Probes, 3, Off)
	c.ProbeTimeout = valueOr(c.ProbeTimeout, 10*time.Second, Off)
	c.KeepFailures = valueOr(c.KeepFailures, 8, 0)
	c.Initial = cmp.Or(c.Initial, Closed)
	return c
}

// valueOr returns zero if v is 0, off if v is Off, and otherwise v.
func valueOr[T int | float64 | time.Duration](v, zero, off T) T {
	switch v {
	case 0:
		return zero
	case Off:
		return off
	}
	return v
}
