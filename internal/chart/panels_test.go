package chart_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/chart"
)

func panels() chart.Panels {
	level := []chart.Point{{0, 200}, {1, 200}, {2, 200}, {60, 200}}
	return chart.Panels{Title: "Outage & <return>", X: "seconds", Y: "calls per second", Panels: []chart.Panel{
		{Name: "none", From: 20, To: 40, Lines: []chart.Line{{Name: "offered", Points: level}, {Name: "good", Points: []chart.Point{{0, 200}, {30, 0}, {60, 200}}}}},
		{Name: "a<b", Lines: []chart.Line{{Name: "offered", Points: level}, {Name: "good"}}},
	}}
}

func drawPanels(t *testing.T, p chart.Panels) element {
	t.Helper()
	var b strings.Builder
	require.NoError(t, p.Write(&b))
	var root element
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &root))
	return root
}

func TestPanelsAreWellFormedAndHaveAllLabels(t *testing.T) {
	root := drawPanels(t, panels())
	var words []string
	for _, text := range root.all("text") {
		words = append(words, text.Text)
	}
	require.Subset(t, words, []string{"Outage & <return>", "calls per second over seconds", "none", "a<b", "● offered", "● good", "0", "20", "60", "100", "200"})
	require.Len(t, root.all("polyline"), 4)
}

func TestPanelsHaveLinearScalesAndShadeASpan(t *testing.T) {
	root := drawPanels(t, panels())
	lines := root.all("polyline")
	// The x axis maps 0 to 40 px and 60 to 234 px. The y axis maps 0 to 124 px and 200 to 20 px.
	require.Equal(t, "40.0,20.0 234.0,20.0", lines[0].attr("points"), "points on a horizontal line are left out")
	require.Equal(t, "40.0,20.0 137.0,124.0 234.0,20.0", lines[1].attr("points"))
	var shaded []string
	for _, rect := range root.all("rect") {
		if rect.attr("class") == "shade" {
			shaded = append(shaded, rect.attr("x")+" "+rect.attr("width"))
		}
	}
	require.Equal(t, []string{"104.7 64.7"}, shaded, "only the first panel has a shaded span, a third of the 194 px")
}

func TestPanelsWithoutPoints(t *testing.T) {
	require.Empty(t, drawPanels(t, chart.Panels{Title: "nothing"}).all("polyline"))
	root := drawPanels(t, chart.Panels{Panels: []chart.Panel{{Name: "zero", Lines: []chart.Line{{Name: "good", Points: []chart.Point{{0, 0}}}}}}})
	require.Equal(t, "40.0,124.0", root.all("polyline")[0].attr("points"))
}

func TestPanelsReturnTheErrorOfTheWriter(t *testing.T) {
	require.ErrorIs(t, panels().Write(fullWriter{}), errFull)
}
