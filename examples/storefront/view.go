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

// view shows frames to somebody.
type view interface {
	every() time.Duration // how often it wants one
	draw(f frame)
	close(last frame)
}

// newView returns a live view for a terminal and lines for everything else.
func newView(out *os.File) view {
	if term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb" {
		return &screenView{out: out, color: os.Getenv("NO_COLOR") == "", size: func() (width, height int) {
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil || width == 0 || height == 0 { // some terminals do not say
				return 80, 24
			}
			return width, height
		}}
	}
	return newLineView(out)
}

// show draws a frame every so often until the context is done. The view is closed even if
// something panics meanwhile, or the terminal would stay as it is.
func show(ctx context.Context, v view, l *lookout) {
	defer func() { v.close(l.look()) }()
	ticker := time.NewTicker(v.every())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			v.draw(l.look())
		}
	}
}

// screenView repaints one screen. It uses the terminal's alternate screen, so that what was
// there before comes back at the end.
type screenView struct {
	out   io.Writer
	color bool
	size  func() (width, height int)
	open  bool
}

// What a terminal is told, by ECMA-48 and xterm.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

func (v *screenView) every() time.Duration { return 100 * time.Millisecond }

func (v *screenView) draw(f frame) {
	var b strings.Builder
	if !v.open {
		v.open = true
		b.WriteString(enterScreen)
	}
	width, height := v.size()
	b.WriteString(home)
	lines := page(f, width, v.color)
	// No line end after the last one: on a full screen it would scroll.
	b.WriteString(strings.Join(lines[:min(len(lines), height)], clearLine+"\r\n"))
	b.WriteString(clearLine + clearBelow)
	put(v.out, "%s", b.String())
}

// close gives the terminal back and leaves the last frame on it.
func (v *screenView) close(last frame) {
	if v.open {
		put(v.out, leaveScreen)
	}
	width, _ := v.size()
	for _, line := range page(last, width, v.color) {
		put(v.out, "%s\n", line)
	}
}

// lineView prints a line a second.
type lineView struct {
	out  io.Writer
	told map[event]bool // one that is told of late may have happened before others
}

func newLineView(out io.Writer) *lineView { return &lineView{out: out, told: map[event]bool{}} }

func (v *lineView) every() time.Duration { return time.Second }

func (v *lineView) draw(f frame) {
	var news []event
	for _, e := range f.events {
		if !v.told[e] {
			v.told[e] = true
			news = append(news, e)
		}
	}
	put(v.out, "%s\n", line(f, news))
}

func (v *lineView) close(frame) {}

// put writes for somebody who looks on. The run goes on whether anybody does or not; only
// for the summary it matters.
func put(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
