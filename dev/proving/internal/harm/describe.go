package harm

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Describe describes a world in one line.
func Describe(w sim.World) string {
	s, c := w.Service, w.Clients[0]
	parts := []string{fmt.Sprintf("%g/s for %v", c.Rate, w.For.Round(time.Second)), s.Time.Text}
	if s.Servers < elastic {
		parts = append(parts, fmt.Sprintf("%d servers, queue %d", s.Servers, s.Queue))
	} else {
		parts = append(parts, "elastic")
	}
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Hosts > 1, "%d hosts", s.Hosts)
	add(s.ErrorRate > 0, "%s fail", percent(s.ErrorRate))
	add(c.Timeout > 0 && !c.Cancels, "timeout %v", c.Timeout)
	add(c.Timeout > 0 && c.Cancels, "cancelled after %v", c.Timeout)
	add(c.HurriedShare > 0, "%s within %v", percent(c.HurriedShare), c.Hurried)
	add(c.StreamShare > 0, "%s streams of %s", percent(c.StreamShare), c.Stream.Text)
	add(c.Processes > 1, "%d processes", c.Processes)
	add(c.Retries > 0, "%d retries", c.Retries)
	if len(c.Surge) > 0 {
		parts = append(parts, fmt.Sprintf("%d surges to × %g", len(c.Surge), c.Surge[len(c.Surge)-1].Times))
	}
	for _, f := range w.Faults {
		parts = append(parts, describeFault(f))
	}
	return strings.Join(parts, "; ")
}

func describeFault(f sim.Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v–%v:", f.From.Round(time.Millisecond), f.To.Round(time.Millisecond))
	add := func(ok bool, format string, args ...any) {
		if ok {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(f.Grows, "growing")
	add(f.Down, "down")
	add(f.Capacity == sim.NoCapacity, "stopped")
	add(f.Capacity > 0, "capacity %s", percent(f.Capacity))
	add(f.ErrorRate > 0, "%s fail", percent(f.ErrorRate))
	add(f.ErrorRate > 0 && f.FailTime > 0, "after %v", f.FailTime)
	add(f.Lost > 0, "%s lost", percent(f.Lost))
	add(f.Slower > 0, "× %g slower", f.Slower)
	add(f.SlowShare > 0, "(%s)", percent(f.SlowShare))
	add(f.Period > 0, "%s of each %v", percent(f.Duty), f.Period)
	add(f.Host > 0, "at host %d", f.Host)
	return b.String()
}

func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
