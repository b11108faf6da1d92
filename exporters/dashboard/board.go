package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/stat"
)

// maxChanges is how many changes of state the page remembers.
const maxChanges = 100

// board is what the page knows. place and note belong to whoever reads the
// sources; the rest is called under the sampler's lock.
type board struct {
	config Config
	fresh  []*figure // series that turned up in the reading that goes on

	lines   map[subject]*line
	byID    map[string]*line
	faults  line    // the page's own figures
	changes []event // the oldest first
	seq     uint64  // of the last frame
	shown   shown   // in it
}

// event is a change of the state of a line, which may be gone by now.
type event struct {
	change
	seq  uint64 // of the frame that brought it
	line subject
	id   string
}

func (e event) row() changeRow {
	r := changeRow{
		Seq: e.seq, ID: e.id, Name: clip(e.line.name), At: e.at.UnixMilli(), AtMost: e.atMost, From: e.from, To: e.to,
	}
	for _, s := range e.by {
		r.By = append(r.By, visit{s.name, s.entered})
	}
	return r
}

func newBoard(c Config) *board {
	return &board{config: c, lines: map[subject]*line{}, byID: map[string]*line{}}
}

// place makes the figure of a series that is new.
func (b *board) place(s *stat.Series) *figure {
	f := &figure{series: s}
	b.fresh = append(b.fresh, f)
	return f
}

// note takes a value in.
func (b *board) note(f *figure, value float64) { f.value, f.seen = value, true }

// settle makes the next frame of what has been read at a time.
func (b *board) settle(at time.Time, times map[string]quantiles) *frame {
	for _, f := range b.fresh {
		l := b.line(subjectOf(f.series))
		l.figures = append(l.figures, f)
		l.note(f)
	}
	clear(b.fresh)
	b.fresh = b.fresh[:0]
	b.faults.read()

	b.seq++
	for subject, l := range b.lines {
		if !l.read() {
			delete(b.lines, subject)
			delete(b.byID, l.id)
			continue
		}
		if c, changed := l.step(at, times); changed {
			b.changes = append(b.changes, event{c, b.seq, subject, l.id})
		}
	}
	b.forget()
	return b.frame(at)
}

// line returns the line of a subject, which it makes if there is none.
func (b *board) line(s subject) *line {
	if s.class == exporter {
		return &b.faults
	}
	l, ok := b.lines[s]
	if !ok {
		l = &line{subject: s, id: s.id(), past: past{interval: b.config.Interval, length: b.config.History}}
		b.lines[s] = l
		b.byID[l.id] = l
	}
	return l
}

// forget puts the changes in order, and drops the oldest.
func (b *board) forget() {
	slices.SortStableFunc(b.changes, func(a, c event) int {
		return cmp.Or(a.at.Compare(c.at), strings.Compare(a.line.name, c.line.name))
	})
	if old := len(b.changes) - maxChanges; old > 0 {
		b.changes = slices.Delete(b.changes, 0, old)
	}
}

// of lists the lines of a class by name.
func (b *board) of(c class) []*line {
	var list []*line
	for _, l := range b.lines {
		if l.class == c {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *line) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind), strings.Compare(a.severity, b.severity))
	})
	return list
}
