package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Panels are small charts of the same size and on the same linear scales, from left to right and
// from top to bottom. Their lines have the same names in the same order.
type Panels struct {
	Title, X, Y string
	Panels      []Panel
}

// Panel is one small chart.
type Panel struct {
	Name  string
	Lines []Line
	// From and To bound a part of the x axis that is shaded. Nothing is shaded if they are equal.
	From, To float64
}

// The size of the panels, and the space around each plot, in pixels.
const (
	panelsPerRow            = 3
	panelWidth, panelHeight = 240, 150
	headerHeight            = 56
	plotLeft, plotRight     = 40, 6
	plotTop, plotBottom     = 20, 26
)

// shadeStyle is appended to the style of the charts.
const shadeStyle = `<style>
.shade { fill: #f3e3d3 } @media (prefers-color-scheme: dark) { .shade { fill: #3a2c20 } }
.line { stroke-width: 1.2 } .tick { font-size: 10px }
</style>
`

// Write draws the panels.
func (p Panels) Write(w io.Writer) error {
	x, y := p.scales()
	rows := (len(p.Panels) + panelsPerRow - 1) / panelsPerRow
	wide, high := panelsPerRow*panelWidth, headerHeight+rows*panelHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label=%[3]q>`+"\n",
		wide, high, html.EscapeString(p.Title))
	b.WriteString(style + shadeStyle)
	fmt.Fprintf(&b, `<rect class="panel" width="%d" height="%d" rx="6"/>`+"\n", wide, high)
	text(&b, 12, 22, `class="title"`, p.Title)
	text(&b, 12, 42, `class="tick"`, p.Y+" over "+p.X)
	p.legend(&b, float64(wide-12))
	for i, panel := range p.Panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%panelsPerRow*panelWidth, headerHeight+i/panelsPerRow*panelHeight)
		panel.draw(&b, x, y)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scales returns scales from zero that contain all points.
func (p Panels) scales() (x, y linearScale) {
	x, y = linearScale{from: plotLeft, to: panelWidth - plotRight}, linearScale{from: panelHeight - plotBottom, to: plotTop}
	for _, panel := range p.Panels {
		for _, line := range panel.Lines {
			for _, point := range line.Points {
				x.hi, y.hi = max(x.hi, point.X), max(y.hi, point.Y)
			}
		}
	}
	y.hi = math.Ceil(y.hi/y.step()) * y.step()
	return x, y
}

func (p Panel) draw(b *strings.Builder, x, y linearScale) {
	if p.To > p.From {
		fmt.Fprintf(b, `<rect class="shade" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n",
			x.pixel(p.From), plotTop, x.pixel(p.To)-x.pixel(p.From), panelHeight-plotTop-plotBottom)
	}
	text(b, plotLeft, plotTop-6, "", p.Name)
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%[2]f"/>`+"\n", plotLeft, y.pixel(v), panelWidth-plotRight)
		text(b, plotLeft-4, y.pixel(v)+3, `class="tick" text-anchor="end"`, Number(v))
	}
	for _, v := range x.ticks() {
		text(b, x.pixel(v), panelHeight-plotBottom+13, `class="tick" text-anchor="middle"`, Number(v))
	}
	for i, line := range p.Lines {
		fmt.Fprintf(b, `<g class="c%d"><polyline class="line" points="%s"/></g>`+"\n", i%colours, line.path(x, y))
	}
}

// path returns the points of a line, without those that lie on a horizontal line between their
// neighbours.
func (l Line) path(x, y linearScale) string {
	var path []string
	for i, p := range l.Points {
		if i > 0 && i < len(l.Points)-1 && l.Points[i-1].Y == p.Y && l.Points[i+1].Y == p.Y {
			continue
		}
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.pixel(p.X), y.pixel(p.Y)))
	}
	return strings.Join(path, " ")
}

// legend writes the names of the lines above the panels, on the right.
func (p Panels) legend(b *strings.Builder, at float64) {
	if len(p.Panels) == 0 {
		return
	}
	for i, line := range slices.Backward(p.Panels[0].Lines) {
		text(b, at, 42, fmt.Sprintf(`class="name c%d" text-anchor="end"`, i%colours), "● "+line.Name)
		at -= 7*float64(len([]rune(line.Name))) + 28
	}
}

// linearScale maps values from 0 to hi to pixels.
type linearScale struct{ hi, from, to float64 }

func (s linearScale) pixel(v float64) float64 {
	if s.hi == 0 {
		return s.from
	}
	return s.from + v/s.hi*(s.to-s.from)
}

// step returns the distance of the ticks: 1, 2 or 5 times a power of ten, so that there are three
// to six.
func (s linearScale) step() float64 {
	if s.hi <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(s.hi)))
	for _, step := range []float64{0.2, 0.5, 1} {
		if s.hi/unit <= 5*step {
			return step * unit
		}
	}
	return 2 * unit
}

// ticks returns 0 and the multiples of step up to hi.
func (s linearScale) ticks() (ticks []float64) {
	step := s.step()
	for i := 0; float64(i)*step <= s.hi*(1+1e-9); i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return ticks
}
