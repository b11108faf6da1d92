package dashboard

import (
	"math"
	"time"
)

// point holds the values of an entry at one sample. It is small because there are many.
type point struct {
	at    int64 // Unix time in milliseconds
	calls totals
	state string

	value    float32 // the failure rate, or the value of an alert; NaN if unknown
	p50, p99 float32 // seconds; NaN if unknown
	reset    bool    // the counts do not continue those of the previous point
}

// toFloat32 returns the value of a number, or NaN if it is missing.
func toFloat32(n number) float32 {
	if !n.valid {
		return float32(math.NaN())
	}
	return float32(n.value)
}

// rates are in calls per second.
type rates struct{ passed, failed, refused number }

// history is the points of an entry, oldest first.
type history struct {
	points   []point
	interval time.Duration
	maxAge   time.Duration // older points are dropped
}

func (h *history) add(now point) {
	old := 0
	for old < len(h.points) && now.at-h.points[old].at > h.maxAge.Milliseconds() {
		old++
	}
	h.points = append(h.points[old:], now)
}

// ratesAt returns the rates between point n and the one before.
func (h *history) ratesAt(n int) rates {
	if !h.contiguous(n) {
		return rates{}
	}
	return h.ratesBetween(n-1, n)
}

// recentRates returns the rates in the last span, or in the known part of it.
func (h *history) recentRates(span time.Duration) rates {
	last := len(h.points) - 1
	from := h.points[last].at - (span + h.interval/2).Milliseconds()
	first := last
	for h.contiguous(first) && h.points[first-1].at >= from {
		first--
	}
	return h.ratesBetween(first, last)
}

// contiguous reports whether point n continues the counts of the one before, without a pause in the
// sampling.
func (h *history) contiguous(n int) bool {
	return n > 0 && !h.points[n].reset && h.points[n].at-h.points[n-1].at < 3*h.interval.Milliseconds()
}

// ratesBetween returns the rates between two points. They are missing if a total has fallen,
// because another source has taken the name.
func (h *history) ratesBetween(from, to int) rates {
	a, b := h.points[from], h.points[to]
	seconds := float64(b.at-a.at) / 1000
	d := totals{b.calls.passed - a.calls.passed, b.calls.failed - a.calls.failed, b.calls.refused - a.calls.refused}
	if seconds <= 0 || d.passed < 0 || d.failed < 0 || d.refused < 0 {
		return rates{}
	}
	return rates{roundedNumber(d.passed / seconds), roundedNumber(d.failed / seconds), roundedNumber(d.refused / seconds)}
}
