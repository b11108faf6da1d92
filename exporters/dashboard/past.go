package dashboard

import (
	"math"
	"time"
)

// point is a line at one sample. There are many, so it is small.
type point struct {
	at    int64 // Unix time in milliseconds
	calls totals
	state string

	value    float32 // the failure rate, or the value of an alert; NaN where there is none
	p50, p99 float32 // seconds; NaN where there are none
	apart    bool    // the calls are not those of the point before, and more
}

// small stores a number in a point.
func small(n number) float32 {
	if !n.there {
		return float32(math.NaN())
	}
	return float32(n.value)
}

// flow is calls a second.
type flow struct{ passed, failed, refused number }

// past is a line's points, the oldest first.
type past struct {
	points   []point
	interval time.Duration
	length   time.Duration // older points are dropped
}

func (p *past) add(now point) {
	old := 0
	for old < len(p.points) && now.at-p.points[old].at > p.length.Milliseconds() {
		old++
	}
	p.points = append(p.points[old:], now)
}

// flow returns what went on between point n and the one before it.
func (p *past) flow(n int) flow {
	if !p.joined(n) {
		return flow{}
	}
	return p.between(n-1, n)
}

// recent returns what went on in the last span, or in what is known of it.
func (p *past) recent(span time.Duration) flow {
	last := len(p.points) - 1
	from := p.points[last].at - (span + p.interval/2).Milliseconds()
	first := last
	for p.joined(first) && p.points[first-1].at >= from {
		first--
	}
	return p.between(first, last)
}

// joined says whether the point before n is known, with the same totals, and nobody has
// paused between them.
func (p *past) joined(n int) bool {
	return n > 0 && !p.points[n].apart && p.points[n].at-p.points[n-1].at < 3*p.interval.Milliseconds()
}

// between is the flow between two points, and nothing where totals have shrunk:
// another source has taken the name.
func (p *past) between(from, to int) flow {
	a, b := p.points[from], p.points[to]
	seconds := float64(b.at-a.at) / 1000
	d := totals{b.calls.passed - a.calls.passed, b.calls.failed - a.calls.failed, b.calls.refused - a.calls.refused}
	if seconds <= 0 || d.passed < 0 || d.failed < 0 || d.refused < 0 {
		return flow{}
	}
	return flow{some(d.passed / seconds), some(d.failed / seconds), some(d.refused / seconds)}
}
