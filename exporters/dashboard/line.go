package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// figure is one series of a line.
type figure struct {
	series *stat.Series
	value  float64 // at the reading that goes on; the reader's alone
	seen   bool    // in that reading
	shown  float64 // at the last sample
}

// subject is what a line is about. It is found by the attributes that name it,
// which are the same in all of its series.
type subject struct {
	class    class
	kind     string // of others: what names them
	name     string
	severity string // of alerts
}

// class says where a line stands on the page.
type class uint8

const (
	calls    class = iota // breakers, limiters and gates: what calls pass through
	alerts                //
	sinks                 // notifiers
	others                // whatever else has figures
	exporter              // the page's own figures: no line
)

func subjectOf(s *stat.Series) subject {
	if s.Instrument == instrument.ExporterSourcePanics || s.Instrument == instrument.ExporterSkippedSamples {
		return subject{class: exporter}
	}
	if len(s.Values) == 0 {
		return subject{class: others, kind: "figure", name: s.Instrument.Name}
	}
	key, name := s.Instrument.Attrs[0], s.Values[0]
	switch key {
	case "weir.breaker.name", "weir.limiter.name":
		if member := attribute(s, ".group.key"); member != "" {
			name += " / " + member
		}
		return subject{class: calls, name: name}
	case "weir.alert.rule":
		return subject{class: alerts, name: name, severity: s.Values[1]}
	case "weir.notifier.name":
		return subject{class: sinks, name: name}
	}
	key = strings.TrimSuffix(key, ".name")
	return subject{class: others, kind: key[strings.LastIndexByte(key, '.')+1:], name: name}
}

// attribute returns the value of the attribute whose key ends so, "" where there is none.
func attribute(s *stat.Series, ending string) string {
	for n, key := range s.Instrument.Attrs {
		if strings.HasSuffix(key, ending) {
			return s.Values[n]
		}
	}
	return ""
}

// id names the subject in addresses: the same in every process, and short however
// long the name is.
func (s subject) id() string {
	h := sha256.New()
	for _, part := range []string{string('0' + rune(s.class)), s.kind, s.name, s.severity} {
		h.Write([]byte(part + "\xff"))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}

// line is all that is known of a subject.
type line struct {
	subject
	id      string
	figures []*figure

	// Totals that come or go are no flow and no change: they are another source's history.
	newCalls, newStages bool

	now   reading
	times quantiles
	track track
	past  past
}

// read takes the values of the last reading. It returns false if there are none:
// the source is gone.
func (l *line) read() bool {
	l.now = reading{}
	live := l.figures[:0]
	for _, f := range l.figures {
		if !f.seen {
			l.note(f)
			continue // the set has forgotten this series, and would come with a new figure
		}
		f.seen, f.shown = false, f.value
		l.now.add(f.series, f.value)
		live = append(live, f)
	}
	clear(l.figures[len(live):])
	l.figures = live
	return len(live) > 0
}

// note takes note of a figure that has come or gone since the last sample.
func (l *line) note(f *figure) {
	switch f.series.Instrument {
	case instrument.BreakerCalls, instrument.LimiterRequests:
		l.newCalls = true
	case instrument.BreakerTransitions, instrument.BreakerStateTime, instrument.AlertTransitions:
		l.newStages = true
	}
}

// step moves the line to the sample at a time.
func (l *line) step(at time.Time, times map[string]quantiles) (c change, changed bool) {
	now, value := l.now.state(), l.now.failureRate()
	if l.class == alerts {
		value = l.now.value
	} else if l.class == calls {
		l.times = times[l.name]
	}
	l.past.add(point{
		at: at.UnixMilli(), calls: l.now.count(), state: now.name,
		value: small(value), p50: small(l.times.p50), p99: small(l.times.p99), apart: l.newCalls,
	})
	if l.newStages {
		l.track = track{}
	}
	l.newCalls, l.newStages = false, false
	if now.name == "" {
		return c, false
	}
	return l.track.step(l.now.stages, now, at)
}
