package main

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/breaker"
)

// textColor is a text color, as numbered by ECMA-48.
type textColor int

const (
	plain  textColor = 0
	red    textColor = 31
	green  textColor = 32
	yellow textColor = 33
)

func behaviorHue(c behavior) textColor {
	return [...]textColor{answers: green, failsHalf: yellow, hangs: red}[c]
}

func breakerHue(s breaker.State) textColor {
	return map[breaker.State]textColor{breaker.Closed: green, breaker.Open: red, breaker.HalfOpen: yellow, breaker.Recovering: yellow}[s]
}

func alertHue(a alertState) textColor {
	return [...]textColor{inactive: green, pending: yellow, firing: red}[a]
}

func failingHue(share float64) textColor {
	if share > 0.2 {
		return red
	}
	return green
}

// lineWriter writes lines that fit into the width.
type lineWriter struct {
	width int
	color bool
	lines []string
}

// linePart is a part of a line.
type linePart struct {
	text string
	hue  textColor
}

// write adds a line with the pieces, and cuts it at the width.
func (p *lineWriter) write(pieces ...linePart) {
	var b strings.Builder
	left := p.width
	for _, piece := range pieces {
		runes := []rune(piece.text)
		runes = runes[:min(len(runes), max(left, 0))]
		left -= len(runes)
		if p.color && piece.hue != plain && len(runes) > 0 {
			fmt.Fprintf(&b, "\x1b[%dm%s\x1b[0m", piece.hue, string(runes))
		} else {
			b.WriteString(string(runes))
		}
	}
	p.lines = append(p.lines, strings.TrimRight(b.String(), " "))
}

func (p *lineWriter) text(format string, args ...any) {
	p.write(linePart{text: " " + fmt.Sprintf(format, args...)})
}

func (p *lineWriter) writeLabelled(label string, h textColor, word, note string) {
	p.write(linePart{text: fmt.Sprintf(" %-9s", label)}, linePart{text: fmt.Sprintf("%-11s", word), hue: h}, linePart{text: note})
}

// barWidth is the length of a full bar, in characters.
const barWidth = columns

func (p *lineWriter) bar(label string, h textColor, share float64, figure string) {
	full := int(barWidth*min(max(share, 0), 1) + 0.5)
	p.write(
		linePart{text: fmt.Sprintf(" %-9s", label)},
		linePart{text: strings.Repeat("█", full), hue: h},
		linePart{text: strings.Repeat("░", barWidth-full) + "  " + figure},
	)
}

// drawHistory draws the history with one character per interval.
func (p *lineWriter) drawHistory(label string, past history, mark func(interval) (string, textColor)) {
	pieces := []linePart{{text: fmt.Sprintf(" %-9s", label)}}
	for _, s := range past {
		text, h := mark(s)
		if last := &pieces[len(pieces)-1]; last.hue == h {
			last.text += text
		} else {
			pieces = append(pieces, linePart{text: text, hue: h})
		}
	}
	pieces = append(pieces, linePart{text: strings.Repeat("·", columns-len(past))})
	p.write(pieces...)
}

// writeEvents writes the latest events. The number of lines is the same if there are fewer events.
func (p *lineWriter) writeEvents(events []event) {
	const room = 4
	latest := events[max(len(events)-room, 0):]
	for _, e := range latest {
		p.text("%5.1fs  %s", e.at.Seconds(), e.text)
	}
	for range room - len(latest) {
		p.text("")
	}
}
