package breaker

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/report"
)

// Settings returns the Config with its defaults, in words, except for its functions.
func (r *rules) Settings() []report.Setting {
	c := &r.config
	all := []report.Setting{
		{Name: "FailureRate", Value: rateText(c.FailureRate)},
		{Name: "FailureRun", Value: countText(c.FailureRun)},
		{Name: "ConsecutiveFailures", Value: countText(c.ConsecutiveFailures)},
		{Name: "SlowCall", Value: spanText(c.SlowCall)},
		{Name: "SlowRate", Value: rateText(c.SlowRate)},
		{Name: "HungCalls", Value: strconv.FormatBool(c.HungCalls)},
		{Name: "MinCalls", Value: countText(c.MinCalls)},
	}
	if c.LastCalls > 0 {
		all = append(all, report.Setting{Name: "LastCalls", Value: countText(c.LastCalls)})
	} else {
		all = append(all, report.Setting{Name: "Window", Value: fmt.Sprintf("%v in %d buckets", c.Window, c.Buckets)})
	}
	return append(all,
		report.Setting{Name: "Cooldown", Value: spanText(c.Cooldown)},
		report.Setting{Name: "CooldownFactor", Value: strconv.FormatFloat(c.CooldownFactor, 'g', 4, 64)},
		report.Setting{Name: "MaxCooldown", Value: spanText(c.MaxCooldown)},
		report.Setting{Name: "CooldownJitter", Value: rateText(c.CooldownJitter)},
		report.Setting{Name: "MaxRetryAfter", Value: spanText(c.MaxRetryAfter)},
		report.Setting{Name: "Probes", Value: countText(c.Probes)},
		report.Setting{Name: "ProbeTimeout", Value: spanText(c.ProbeTimeout)},
		report.Setting{Name: "HalfOpenTimeout", Value: spanText(c.HalfOpenTimeout)},
		report.Setting{Name: "Recovery", Value: spanText(c.Recovery)},
		report.Setting{Name: "KeepFailures", Value: countText(c.KeepFailures)},
		report.Setting{Name: "CountDeadlines", Value: strconv.FormatBool(c.CountDeadlines)},
	)
}

const offText = "off"

func rateText(share float64) string {
	if share <= 0 {
		return offText
	}
	return fmt.Sprintf("%.4g %%", 100*share)
}

func countText(n int) string {
	if n <= 0 || n == math.MaxInt {
		return offText
	}
	return strconv.Itoa(n)
}

func spanText(d time.Duration) string {
	if d <= 0 || d == math.MaxInt64 {
		return offText
	}
	return d.String()
}
