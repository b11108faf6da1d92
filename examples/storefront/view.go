package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// view shows snapshots.
type view interface {
	every() time.Duration // the interval between two snapshots
	draw(f snapshot)
	close(last snapshot)
}

// newView returns a live view if out is a terminal, and otherwise a view that prints lines.
func newView(out *os.File) view {
	if term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb" {
		return &screenView{out: out, color: os.Getenv("NO_COLOR") == "", size: func() (width, height int) {
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil || width == 0 || height == 0 { // some terminals have no size
				return 80, 24
			}
			return width, height
		}}
	}
	return newLineView(out)
}

// show draws snapshots until the context is done. It closes the view even after a panic, so that
// the terminal is restored.
func show(ctx context.Context, v view, l *sampler) {
	defer func() { v.close(l.sample()) }()
	ticker := time.NewTicker(v.every())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			v.draw(l.sample())
		}
	}
}

// screenView redraws one screen. It uses the alternate screen of the terminal, so that the previous
// content comes back at the end.
type screenView struct {
	out   io.Writer
	color bool
	size  func() (width, height int)
	open  bool
}

// Control sequences for terminals, from ECMA-48 and xterm.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // switch to the alternate screen and hide the cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

func (v *screenView) every() time.Duration { return 100 * time.Millisecond }

func (v *screenView) draw(f snapshot) {
	var b strings.Builder
	if !v.open {
		v.open = true
		b.WriteString(enterScreen)
	}
	width, height := v.size()
	b.WriteString(cursorHome)
	lines := page(f, width, v.color)
	// The last line has no line break, because that would scroll a full screen.
	b.WriteString(strings.Join(lines[:min(len(lines), height)], clearLine+"\r\n"))
	b.WriteString(clearLine + clearBelow)
	printTo(v.out, "%s", b.String())
}

// close leaves the alternate screen and prints the last snapshot.
func (v *screenView) close(last snapshot) {
	if v.open {
		printTo(v.out, leaveScreen)
	}
	width, _ := v.size()
	for _, line := range page(last, width, v.color) {
		printTo(v.out, "%s\n", line)
	}
}

// lineView prints one line per second.
type lineView struct {
	out     io.Writer
	printed map[event]bool // a map, because a late event may be older than events that were printed
}

func newLineView(out io.Writer) *lineView { return &lineView{out: out, printed: map[event]bool{}} }

func (v *lineView) every() time.Duration { return time.Second }

func (v *lineView) draw(f snapshot) {
	var news []event
	for _, e := range f.events {
		if !v.printed[e] {
			v.printed[e] = true
			news = append(news, e)
		}
	}
	printTo(v.out, "%s\n", line(f, news))
}

func (v *lineView) close(snapshot) {}

// printTo prints for display only. It ignores errors, because the run goes on without a display.
func printTo(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
