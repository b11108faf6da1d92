package chart

import (
	"fmt"
	"math"
	"strings"
)

// scale maps values to pixels, linearly in their logarithms.
type scale struct {
	lo, hi   float64 // powers of ten
	from, to float64 // pixels
}

// emptyScale returns a scale without values, for the pixels from one end to the other.
func emptyScale(from, to float64) scale { return scale{math.Inf(1), math.Inf(-1), from, to} }

// extend extends the scale to v.
func (s *scale) extend(v float64) { s.lo, s.hi = min(s.lo, clampedLog(v)), max(s.hi, clampedLog(v)) }

// toPowersOfTen extends the scale to powers of ten at both ends. It covers at least one.
func (s scale) toPowersOfTen() scale {
	if s.lo > s.hi {
		s.lo, s.hi = 0, 1
	}
	s.lo, s.hi = math.Floor(s.lo+1e-9), math.Ceil(s.hi-1e-9)
	s.hi = max(s.hi, s.lo+1)
	return s
}

// pixel returns the pixel of a value.
func (s scale) pixel(v float64) float64 {
	return s.from + (clampedLog(v)-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// grid draws a line for each power of ten.
func (s scale) grid(b *strings.Builder, ends func(at float64) (x1, y1, x2, y2 float64)) {
	for e := s.lo; e <= s.hi; e++ {
		x1, y1, x2, y2 := ends(s.pixel(math.Pow(10, e)))
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x1, y1, x2, y2)
	}
}

// labels writes a label for each power of ten.
func (s scale) labels(b *strings.Builder, attributes string, place func(at float64) (x, y float64)) {
	for e := s.lo; e <= s.hi; e++ {
		x, y := place(s.pixel(math.Pow(10, e)))
		text(b, x, y, attributes, Number(math.Pow(10, e)))
	}
}
