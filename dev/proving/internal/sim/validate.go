package sim

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Validate returns an error that names all invalid fields, or nil if there are none.
func (w World) Validate() error {
	var v faults
	v.check(w.For > 0 && w.For <= endlessTime, "For is %v, must be positive and at most %v", w.For, endlessTime)
	v.check(w.Warmup >= 0 && w.Warmup <= w.For, "Warmup is %v, must be from 0 to For", w.Warmup)
	if w.Trouble != (Span{}) {
		v.span("Trouble", w.Trouble)
		v.check(w.Trouble.To <= w.For, "Trouble ends at %v, must end by %v", w.Trouble.To, w.For)
	}
	v.service(&w.Service)
	for i := range w.Faults {
		v.fault(fmt.Sprintf("Faults[%d]", i), &w.Faults[i], max(w.Service.Hosts, 1))
	}
	v.check(len(w.Clients) > 0, "Clients is empty")
	for i := range w.Clients {
		v.client(fmt.Sprintf("Clients[%d]", i), &w.Clients[i])
	}
	v.endings(w)
	return errors.Join(v...)
}

// faults collects the errors of an invalid world.
type faults []error

func (v *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*v = append(*v, fmt.Errorf("sim: "+format, args...))
	}
}

func (v *faults) span(name string, s Span) {
	v.check(s.From >= 0 && s.From < s.To && s.To <= endlessTime, "%s is from %v to %v, must end after it begins",
		name, s.From, s.To)
}

func (v *faults) checkShare(name string, x float64) {
	v.check(x >= 0 && x <= 1, "%s is %v, must be from 0 to 1", name, x)
}

func (v *faults) checkNotNegative(name string, d time.Duration) {
	v.check(d >= 0 && d <= endlessTime, "%s is %v, must be from 0 to %v", name, d, endlessTime)
}

func (v *faults) service(s *Service) {
	v.check(s.Servers > 0, "Service.Servers is %d, must be positive", s.Servers)
	v.check(s.Time.At != nil, "Service.Time is missing")
	v.check(s.Queue >= 0, "Service.Queue is %d, must be at least 0", s.Queue)
	v.check(s.Hosts >= 0, "Service.Hosts is %d, must be at least 0", s.Hosts)
	v.checkShare("Service.ErrorRate", s.ErrorRate)
	v.checkNotNegative("Service.RetryAfter", s.RetryAfter)
}

func (v *faults) fault(name string, f *Fault, hosts int) {
	v.span(name, f.Span)
	v.checkNotNegative(name+".FailTime", f.FailTime)
	v.checkShare(name+".ErrorRate", f.ErrorRate)
	v.check(f.Slower >= 0 && !math.IsInf(f.Slower, 0), "%s.Slower is %v, must be at least 0", name, f.Slower)
	v.checkShare(name+".SlowShare", f.SlowShare)
	v.check(f.Capacity == NoCapacity || f.Capacity >= 0 && f.Capacity <= 1,
		"%s.Capacity is %v, must be from 0 to 1, or NoCapacity", name, f.Capacity)
	v.checkShare(name+".Lost", f.Lost)
	v.checkShare(name+".Duty", f.Duty)
	v.check(f.Period == 0 || f.Period >= 2*time.Millisecond, "%s.Period is %v, must be 0 or at least 2ms", name, f.Period)
	v.check(f.Host >= 0 && f.Host <= hosts, "%s.Host is %d, must be from 0 to %d", name, f.Host, hosts)
	v.check(f.Cold == 0 || f.Cold >= 1 && !math.IsInf(f.Cold, 0), "%s.Cold is %v, must be at least 1", name, f.Cold)
	v.check(f.ColdCalls >= 0, "%s.ColdCalls is %d, must be at least 0", name, f.ColdCalls)
}

func (v *faults) client(name string, c *Client) {
	v.check(c.Processes >= 0, "%s.Processes is %d, must be at least 0", name, c.Processes)
	v.check(c.Rate >= 0 && c.Rate <= 1e6, "%s.Rate is %v, must be from 0 to 1e6", name, c.Rate)
	v.check(c.Rate > 0 || c.Users > 0 && c.Think > 0, "%s needs a Rate, or Users and Think", name)
	v.checkNotNegative(name+".Timeout", c.Timeout)
	v.check(!c.Cancels || c.Timeout > 0, "%s.Cancels needs a Timeout", name)
	v.checkShare(name+".StreamShare", c.StreamShare)
	v.check(c.StreamShare == 0 || c.Stream.At != nil, "%s.Stream is missing", name)
	v.checkShare(name+".HurriedShare", c.HurriedShare)
	v.check(c.HurriedShare == 0 || c.Hurried > 0, "%s.Hurried is %v, must be positive", name, c.Hurried)
	v.check(c.Retries >= 0 && c.Retries <= 1000, "%s.Retries is %d, must be from 0 to 1000", name, c.Retries)
	v.checkNotNegative(name+".Backoff", c.Backoff)
	v.checkShare(name+".Budget", c.Budget)
	v.check(c.From >= 0 && c.To >= 0, "%s is from %v to %v, must be at least 0", name, c.From, c.To)
	if c.Suspended != (Span{}) {
		v.span(name+".Suspended", c.Suspended)
	}
	for i, s := range c.Surge {
		v.span(fmt.Sprintf("%s.Surge[%d]", name, i), s.Span)
		v.check(s.Times >= 0 && s.Times <= 1e6, "%s.Surge[%d].Times is %v, must be from 0 to 1e6", name, i, s.Times)
	}
}

// endings checks that every call ends.
func (v *faults) endings(w World) {
	for i := range w.Faults {
		for j := range w.Clients {
			v.check(w.Faults[i].Lost == 0 || w.Clients[j].Timeout > 0,
				"Faults[%d].Lost needs a Timeout of Clients[%d], because a lost call has no other end", i, j)
		}
	}
}
