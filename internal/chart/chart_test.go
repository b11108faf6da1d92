package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/chart"
)

// element is an element of an SVG with its children.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Inside  []element  `xml:",any"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the elements with the name, at any depth.
func (e element) all(name string) (found []element) {
	for _, inside := range e.Inside {
		if inside.XMLName.Local == name {
			found = append(found, inside)
		}
		found = append(found, inside.all(name)...)
	}
	return found
}

func drawChart(t *testing.T, c chart.Chart) (root element, source string) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, c.Write(&b))
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &root))
	return root, b.String()
}

func keysChart() chart.Chart {
	return chart.Chart{Title: `Keys & "costs"`, X: "keys", Y: "ns", Lines: []chart.Line{
		{Name: "weir", Points: []chart.Point{{1, 30}, {1000, 40}, {1e7, 90}}},
		{Name: "<peer>", Points: []chart.Point{{1, 100}, {1000, 300}}},
	}}
}

func TestChartIsWellFormedAndHasAllLabels(t *testing.T) {
	root, source := drawChart(t, keysChart())
	var words []string
	for _, text := range root.all("text") {
		words = append(words, text.Text)
	}
	require.Subset(t, words, []string{`Keys & "costs"`, "keys", "ns", "● weir", "● <peer>", "1", "10", "1 k", "10 M", "100"})
	require.Len(t, root.all("polyline"), 2)
	require.Len(t, root.all("circle"), 5)
	require.Contains(t, source, "prefers-color-scheme: dark", "the chart has colors for a dark page")
	require.Contains(t, source, `role="img" aria-label=`, "the chart has a label for screen readers")
}

func TestScalesAreLogarithmic(t *testing.T) {
	root, _ := drawChart(t, keysChart())
	var dots []string
	for _, dot := range root.all("circle") {
		dots = append(dots, dot.attr("cx")+" "+dot.attr("cy"))
	}
	// The x axis maps 1 to 64 px and 10 M to 696 px. The y axis maps 10 to 352 px and 1000 to 64
	// px.
	require.Equal(t, []string{"64.0 283.3", "334.9 265.3", "696.0 214.6", "64.0 208.0", "334.9 139.3"}, dots)
}

func TestEmptyChart(t *testing.T) {
	root, _ := drawChart(t, chart.Chart{Title: "nothing"})
	require.Empty(t, root.all("circle"))
	require.Len(t, root.all("line"), 4, "both scales are from 1 to 10")
	one, _ := drawChart(t, chart.Chart{Lines: []chart.Line{{Name: "one", Points: []chart.Point{{10, 10}}}}})
	require.Equal(t, "64.0 352.0", one.all("circle")[0].attr("cx")+" "+one.all("circle")[0].attr("cy"))
}

func TestNumbersAreShort(t *testing.T) {
	var got []string
	for _, v := range []float64{0.5, 1, 45.25, 999, 1000, 1234, 1e6, 2.5e7, 1e9} {
		got = append(got, chart.Number(v))
	}
	require.Equal(t, "[0.5 1 45.2 999 1 k 1.23 k 1 M 25 M 1 G]", fmt.Sprint(got))
}

type fullWriter struct{ io.Writer }

var errFull = errors.New("full")

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteReturnsTheErrorOfItsWriter(t *testing.T) {
	require.ErrorIs(t, keysChart().Write(fullWriter{}), errFull)
}
