package dashboard

import (
	"cmp"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat/view"
)

// problem says what is wrong with a source: since when, why, and what happens next. It is zero for
// a source without trouble.
type problem struct {
	Down     number `json:"down,omitzero"` // when the incident began
	Openings int    `json:"openings,omitempty"`
	// why the breaker opened first in the last incident
	Cause     string `json:"cause,omitempty"`
	Reason    string `json:"reason,omitempty"`         // why it opened last
	LastError string `json:"lastError,omitempty"`      // the last failure, in words
	FailedAt  number `json:"lastErrorAt,omitzero"`     // when that call failed
	Probe     number `json:"probe,omitzero"`           // when the next probe is due
	Probes    int    `json:"probes,omitempty"`         // half-open: results of probes
	OneOf     int    `json:"oneOf,omitempty"`          // recovering: one of this many calls passes
	Trouble   string `json:"trouble,omitempty"`        // of a source that is not down: see trouble
	Since     number `json:"troubleSince,omitzero"`    // when the page first saw the trouble
	AtLeast   bool   `json:"troubleAtLeast,omitempty"` // it may have begun before
	Limit     number `json:"limit,omitzero"`           // of a limiter that refuses calls
	Period    number `json:"period,omitzero"`          // the seconds to which it refers
	Burst     int    `json:"burst,omitempty"`          // the most calls at once, if not Limit
	// the calls without a breaker of their key, and the requests without a limit of their key,
	// since the table of keys was seen to be full
	Unguarded float64 `json:"unguarded,omitempty"`
	NoRoom    float64 `json:"noRoom,omitempty"`
	// when the limit has a token again, or the hold ends
	Free      number `json:"free,omitzero"`
	Slow      number `json:"slow,omitzero"`      // the share of slow calls
	SlowLimit number `json:"slowLimit,omitzero"` // the share at which the breaker opens
	SlowCall  number `json:"slowCall,omitzero"`  // the seconds after which a call is slow

	// The last incidents that the breaker remembers, the lasting one included.
	Incidents  int    `json:"incidents,omitempty"`
	FirstBegan number `json:"firstBegan,omitzero"`
	LastBegan  number `json:"lastBegan,omitzero"`
	LastEnded  number `json:"lastEnded,omitzero"` // missing while it lasts
}

// maxText is the longest text of a problem, in bytes. The view of a source shows more.
const maxText = 240

// The troubles of a source whose breaker is closed, the worst first.
const (
	heldTrouble    = "held"    // the service has asked not to be called
	fullTrouble    = "full"    // a table has no room for further keys
	limitedTrouble = "limited" // a limit refuses or delays calls
	failingTrouble = "failing" // at least half of the failures that would open the breaker
	slowTrouble    = "slow"    // at least half of the slow calls that would open it
)

// fewestCalls is the number of calls in a window from which trouble is shown. A single failure is
// not trouble.
const fewestCalls = 10

// worstTrouble returns the worst trouble of an entry, or "".
func (e *entry) worstTrouble(at time.Time) string {
	s := e.extra.status
	calls, failureRate := e.windowCalls()
	threshold := roundedNumber(e.gauge(instrument.BreakerThresholdFailureRatio))
	switch {
	case e.class != callsClass || s != nil && s.Lasts() != nil:
		return ""
	case s != nil && s.Held > 0:
		return heldTrouble
	case !e.fullAt.IsZero() && at.Sub(e.fullAt) < rateSpan:
		return fullTrouble
	case !e.limitedAt.IsZero() && at.Sub(e.limitedAt) < rateSpan || e.sum(instrument.LimiterWaiting) > 0:
		return limitedTrouble
	case calls < fewestCalls:
		return ""
	case threshold.value > 0 && failureRate.value >= threshold.value/2:
		return failingTrouble
	case s != nil && s.SlowLimit > 0 && s.SlowRate >= s.SlowLimit/2:
		return slowTrouble
	}
	return ""
}

// recordTroubleStart notes since when an entry has had trouble.
func (e *entry) recordTroubleStart(at time.Time) {
	refused := e.limitRefusals()
	if len(e.history.points) > 1 && !e.callsReset && refused > e.limitRefused {
		e.limitedAt = at
	}
	e.limitRefused = refused
	e.recordFull(at)
	now := e.worstTrouble(at)
	if (now == "") != (e.troubled == "") {
		e.troubleSince = at
		e.troubleAtLeast = len(e.history.points) <= 2
	}
	e.troubled = now
}

// recordFull notes since when a table has had no room for keys. Without the counts of an earlier
// sample, it is not known when they rose.
func (e *entry) recordFull(at time.Time) {
	if now := e.fullCounts(); now != e.fullLast {
		if len(e.history.points) > 1 && !e.callsReset {
			if at.Sub(e.fullAt) >= rateSpan {
				e.fullBefore = e.fullLast
			}
			e.fullAt = at
		}
		e.fullLast = now
	}
}

func (e *entry) fullCounts() fullCounts {
	return fullCounts{e.sum(instrument.BreakerGroupUnguarded), e.sum(instrument.LimiterNoRoom)}
}

// problem returns what is wrong with an entry at the given time.
func (e *entry) problem(at time.Time) (p problem) {
	if p.Trouble = e.troubled; p.Trouble != "" {
		p.Since, p.AtLeast = unixMillis(e.troubleSince), e.troubleAtLeast
	}
	if p.Trouble == fullTrouble {
		p.Unguarded, p.NoRoom = e.fullLast.unguarded-e.fullBefore.unguarded, e.fullLast.noRoom-e.fullBefore.noRoom
	}
	if p.Trouble == limitedTrouble {
		limit := e.gauge(instrument.LimiterLimit)
		p.Limit, p.Period = exactNumber(limit), exactNumber(e.gauge(instrument.LimiterPeriod))
		if x := &e.extra; x.events > 0 && x.per > 0 {
			p.Limit, p.Period = exactNumber(float64(x.events)), exactNumber(x.per.Seconds())
			if burst := cmp.Or(x.burst, int(exactNumber(limit).value)); int64(burst) != x.events {
				p.Burst = burst
			}
		}
		if free := e.extra.nextToken; free > 0 {
			p.Free = unixMillisAfter(at, free)
		}
	}
	if s := e.extra.status; s != nil {
		p.addStatus(s, at)
	}
	return p
}

// addStatus adds what a guard knows of itself.
func (p *problem) addStatus(s *view.Status, at time.Time) {
	if s.Held > 0 {
		p.Free = unixMillisAfter(at, s.Held)
	}
	if s.SlowLimit > 0 {
		p.Slow, p.SlowLimit, p.SlowCall = roundedNumber(s.SlowRate), roundedNumber(s.SlowLimit), exactNumber(s.SlowCall.Seconds())
	}
	lasts := s.Lasts()
	if len(s.Failures) > 0 && (lasts != nil || p.Trouble == failingTrouble) {
		p.LastError, p.FailedAt = truncateText(failureText(s.Failures[0])), unixMillis(s.Failures[0].Time)
	}
	if all := incidentRows(s); len(all) > 0 {
		last := all[len(all)-1]
		p.Incidents, p.FirstBegan, p.LastBegan = len(all), exactNumber(float64(all[0].Began)), exactNumber(float64(last.Began))
		p.LastEnded, p.Cause = last.Ended, truncateText(last.Cause)
	}
	if lasts != nil {
		p.Down, p.Probe = unixMillis(lasts.Began), unixMillis(s.RetryAt)
		p.Openings, p.Probes, p.OneOf = lasts.Openings, s.Probes, s.OneOf
		p.Reason = truncateText(withPlainDurations(s.Reason))
	}
}

// unixMillisAfter returns the Unix time in milliseconds after d, or missing if that is more than a
// year.
func unixMillisAfter(at time.Time, d time.Duration) number {
	if d > 365*24*time.Hour {
		return missingNumber
	}
	return unixMillis(at.Add(d))
}

func truncateText(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
