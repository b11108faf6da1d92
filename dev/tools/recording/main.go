// Command recording draws its standard input as the picture of a terminal, an SVG on standard
// output. Each line appears in the picture as long after the first one as it was read. If a reader
// wants no animation, all lines are there at once.
//
//	program | recording command > picture.svg
//
// The first line of the picture is the command, after a prompt.
package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	lines := []line{{text: "$ " + strings.Join(os.Args[1:], " ")}}
	in, start := bufio.NewScanner(os.Stdin), time.Time{}
	for in.Scan() {
		if start.IsZero() {
			start = time.Now()
		}
		lines = append(lines, line{text: in.Text(), after: time.Since(start)})
	}
	err := in.Err()
	if err == nil {
		_, err = io.WriteString(os.Stdout, draw(lines))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// line is a line of the terminal.
type line struct {
	text  string
	after time.Duration // since the first line
}

// Sizes in pixels. The width of a line is set in the picture, because fonts differ.
const (
	charWidth  = 8
	lineHeight = 18
	margin     = 16
)

// draw returns the lines as an SVG.
func draw(lines []line) string {
	columns := 0
	for _, l := range lines {
		columns = max(columns, len([]rune(l.text)))
	}
	width, height := 2*margin+charWidth*columns, 2*margin+lineHeight*len(lines)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">
<style>
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f; white-space: pre }
.panel { fill: #fff; stroke: #d0d7de }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .panel { fill: #161b22; stroke: #373e47 } }
@media (prefers-reduced-motion: no-preference) { text { animation: appear 1ms backwards } }
@keyframes appear { from { opacity: 0 } }
</style>
<rect class="panel" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>
`, width, height, width, height, "the output of "+escaped(strings.TrimPrefix(lines[0].text, "$ ")), width-1, height-1)
	for i, l := range lines {
		text := strings.TrimLeft(l.text, " ")
		if text == "" {
			continue
		}
		indent, length := len(l.text)-len(text), len([]rune(text))
		fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs" style="animation-delay: %.1fs" xml:space="preserve">%s</text>`+"\n",
			margin+charWidth*indent, margin+lineHeight*i+13, charWidth*length, l.after.Seconds(), escaped(text))
	}
	return b.String() + "</svg>\n"
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no error
	return b.String()
}
