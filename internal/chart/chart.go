// Package chart draws lines as SVG, for light and dark pages: one chart on logarithmic scales, or
// small charts side by side on linear ones. The programs in bench and proving draw with it.
package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Chart is one chart.
type Chart struct {
	Title, X, Y string
	Lines       []Line
}

// Line is one curve of a chart, from left to right.
type Line struct {
	Name   string
	Points []Point
}

// Point is one value. Both coordinates are above 0.
type Point struct{ X, Y float64 }

// The size of the chart and its margins, in pixels.
const (
	width, height            = 720, 400
	left, right, top, bottom = 64, 24, 64, 48
)

// style uses no color of the page: the background is part of the chart, and follows the color
// scheme of the reader. The line colors are those of Okabe and Ito, which color-blind people can
// distinguish.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #333 }
.panel { fill: #fff } .grid { stroke: #ddd } .title { font-size: 14px; font-weight: 600 }
.line { fill: none; stroke-width: 2 }
.c0 { --c: #0072b2 } .c1 { --c: #d55e00 } .c2 { --c: #009e73 } .c3 { --c: #a4508b } .c4 { --c: #8a6d00 }
.line, .dot { stroke: var(--c) } .dot, .name { fill: var(--c) }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .panel { fill: #161b22 } .grid { stroke: #373e47 }
  .c0 { --c: #56b4e9 } .c1 { --c: #ff9d5c } .c2 { --c: #3fd6a6 } .c3 { --c: #e59ad0 } .c4 { --c: #f0e442 }
}
</style>
`

// colours is the number of line colors. Further lines use them again.
const colours = 5

// Write draws the chart.
func (c Chart) Write(w io.Writer) error {
	x, y := c.scales()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label=%[3]q>`+"\n",
		width, height, html.EscapeString(c.Title))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="panel" width="%d" height="%d" rx="6"/>`+"\n", width, height)
	text(&b, left, 24, `class="title"`, c.Title)
	text(&b, (left+width-right)/2, height-10, `text-anchor="middle"`, c.X)
	text(&b, left, top-8, "", c.Y)
	x.grid(&b, func(at float64) (x1, y1, x2, y2 float64) { return at, top, at, height - bottom })
	y.grid(&b, func(at float64) (x1, y1, x2, y2 float64) { return left, at, width - right, at })
	x.labels(&b, `text-anchor="middle"`, func(at float64) (x, y float64) { return at, height - bottom + 18 })
	y.labels(&b, `text-anchor="end"`, func(at float64) (x, y float64) { return left - 8, at + 4 })
	for i, line := range c.Lines {
		line.draw(&b, i, x, y)
	}
	c.legend(&b)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scales returns scales that contain all points.
func (c Chart) scales() (x, y scale) {
	x, y = emptyScale(left, width-right), emptyScale(height-bottom, top)
	for _, line := range c.Lines {
		for _, p := range line.Points {
			x.extend(p.X)
			y.extend(p.Y)
		}
	}
	return x.toPowersOfTen(), y.toPowersOfTen()
}

func (l Line) draw(b *strings.Builder, i int, x, y scale) {
	var path []string
	for _, p := range l.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.pixel(p.X), y.pixel(p.Y)))
	}
	fmt.Fprintf(b, `<g class="c%d"><polyline class="line" points="%s"/>`, i%colours, strings.Join(path, " "))
	for _, p := range l.Points {
		fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="3"><title>%s: %s at %s</title></circle>`,
			x.pixel(p.X), y.pixel(p.Y), html.EscapeString(l.Name), Number(p.Y), Number(p.X))
	}
	b.WriteString("</g>\n")
}

// legend writes the names of the lines above the plot, on the right.
func (c Chart) legend(b *strings.Builder) {
	at := float64(width - right)
	for i, line := range slices.Backward(c.Lines) {
		text(b, at, top-8, fmt.Sprintf(`class="name c%d" text-anchor="end"`, i%colours), "● "+line.Name)
		at -= 7*float64(len([]rune(line.Name))) + 28
	}
}

func text(b *strings.Builder, x, y float64, attributes, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attributes, html.EscapeString(words))
}

// Number formats a value for an axis: 1, 10, 1 k, 10 M.
func Number(v float64) string {
	for _, unit := range []struct {
		from float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= unit.from*(1-1e-9) {
			return round(v/unit.from) + unit.name
		}
	}
	return round(v)
}

// round formats v with three digits.
func round(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// clampedLog returns the logarithm in which a scale is linear.
func clampedLog(v float64) float64 { return math.Log10(max(v, 1e-9)) }
