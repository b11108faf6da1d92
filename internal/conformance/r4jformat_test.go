package conformance_test

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
)

type r4jConfig struct {
	Name       string  `json:"name"`
	Discipline string  `json:"discipline"`
	Window     string  `json:"window"` // "COUNT_BASED" or "TIME_BASED"
	Size       int     `json:"size"`   // calls, or seconds
	MinCalls   int     `json:"minimum_calls"`
	Failure    float64 `json:"failure_rate_threshold"` // percent
	Slow       float64 `json:"slow_rate_threshold"`    // percent
	SlowCall   int64   `json:"slow_duration_ns"`
	Probes     int     `json:"half_open_permits"`
	Wait       int64   `json:"wait_open_ms"`
	Factor     float64 `json:"backoff_multiplier"`    // 0 means none
	MaxWait    int64   `json:"backoff_max_ms"`        // 0 means none
	HalfOpen   int64   `json:"max_wait_half_open_ms"` // 0 means no limit
	Then       string  `json:"after_half_open_wait"`  // "OPEN" or "CLOSED"
	Automatic  bool    `json:"automatic_half_open"`   // by a timer, otherwise by the first call
	Initial    string  `json:"initial_state"`
	Start      int64   `json:"start_ms"`
}

type r4jStep struct {
	I       int    `json:"i"`
	Now     int64  `json:"now_ms"`
	Op      string `json:"op"`
	Permit  int    `json:"permit"` // the step in which it was acquired, or -1
	Took    int64  `json:"dur_ns"`
	Class   string `json:"class"`
	Bad     bool   `json:"bad"`
	Advance int64  `json:"ms"`
	To      string `json:"to"`
	For     *int64 `json:"for_ms"`

	PermitState  *string   `json:"permit_state"`
	OK           *bool     `json:"ok"`
	Error        *string   `json:"error"`
	State        *string   `json:"state"`
	FailureRate  *number   `json:"failure_rate"`
	SlowRate     *number   `json:"slow_rate"`
	Buffered     *int64    `json:"buffered"`
	Successful   *int64    `json:"successful"`
	Failed       *int64    `json:"failed"`
	SlowCalls    *int64    `json:"slow"`
	SlowFailed   *int64    `json:"slow_failed"`
	NotPermitted *int64    `json:"not_permitted"`
	Events       *[]string `json:"events"`
}

func (c r4jConfig) breakerConfig() breaker.Config {
	config := breaker.Config{
		FailureRun:  breaker.Off,
		FailureRate: c.Failure / 100, SlowRate: c.Slow / 100, SlowCall: time.Duration(c.SlowCall), MinCalls: c.MinCalls,
		Cooldown: c.weirWait(c.Wait), MaxRetryAfter: breaker.Off, Probes: c.Probes, ProbeTimeout: math.MaxInt64,
		CooldownFactor: c.Factor, MaxCooldown: math.MaxInt64, Recovery: breaker.Off,
	}
	if c.Window == "COUNT_BASED" {
		config.LastCalls = c.Size
	} else {
		config.Window, config.Buckets = time.Duration(c.Size)*time.Second, c.Size
	}
	if c.MaxWait > 0 && c.Factor > 0 {
		config.MaxCooldown = c.weirWait(c.MaxWait)
	}
	if c.Then == "OPEN" {
		config.HalfOpenTimeout = time.Duration(c.HalfOpen) * time.Millisecond
	}
	return config
}

// weirWait returns a wait of weir that ends together with a wait of the reference. If no timer ends
// it, a wait of the reference ends only after the time has passed, not exactly at that time.
func (c r4jConfig) weirWait(ms int64) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	if !c.Automatic {
		d++
	}
	return d
}

// wait returns how long the breaker of Resilience4j stays open after it has opened this many times
// in a row.
func (c r4jConfig) wait(attempt int) int64 {
	if c.Factor == 0 {
		return c.Wait
	}
	ms := c.Wait
	for range attempt - 1 {
		ms = int64(float64(ms) * c.Factor) // truncated each time
	}
	if c.MaxWait > 0 {
		ms = min(ms, c.MaxWait)
	}
	return ms
}

// isTruncated reports whether weir waits longer, because it does not truncate to whole
// milliseconds.
func (c r4jConfig) isTruncated(attempt int) bool {
	if c.Factor == 0 {
		return false
	}
	exact := float64(c.Wait) * math.Pow(c.Factor, float64(attempt-1))
	if c.MaxWait > 0 {
		exact = min(exact, float64(c.MaxWait))
	}
	if !c.Automatic { // both act at the same next whole millisecond
		exact = math.Floor(exact)
	}
	return exact != float64(c.wait(attempt))
}

func percent(part, all int64) float32 { return float32(part) * 100 / float32(all) }

func checkSameRate(r *run, what string, reference *number, weir float32) {
	if reference == nil {
		checkAbsent(r, what, reference)
		return
	}
	got := float32(*reference)
	checkSame(r, what, &got, weir)
}

// javaFloat formats a float as Java does.
func javaFloat(f float32) string {
	if f == float32(math.Trunc(float64(f))) {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprint(f)
}
