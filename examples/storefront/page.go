package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-go/weir/breaker"
)

// line formats a snapshot as one line.
func line(f snapshot, news []event) string {
	s := fmt.Sprintf("%5.1fs  %-9s  %-9s  %3.0f calls/s  failing %3.0f%%  refused %d open, %d limited  alert %s",
		f.at.Seconds(), f.phase.name, f.breaker, f.perSecond, 100*f.failing, f.sum.RefusedOpen, f.sum.RefusedLimited, f.alert)
	if len(news) > 0 {
		s += "  (" + joinTexts(news) + ")"
	}
	return s
}

// fullBar is the number of calls per second that fills the bar.
const fullBar = 500

// page formats a snapshot as lines no wider than width.
func page(f snapshot, width int, color bool) []string {
	p := lineWriter{width: width, color: color}
	p.text("weir storefront, %.1f s of %.1f s", min(f.at, f.run).Seconds(), f.run.Seconds())
	p.writeLabelled("now", behaviorHue(f.phase.behavior), strings.ToUpper(f.phase.name), f.phase.description)
	p.writeLabelled("breaker", breakerHue(f.breaker), strings.ToUpper(string(f.breaker)), "opens if many calls fail, and then sends none")
	p.writeLabelled("alert", alertHue(f.alert), strings.ToUpper(f.alert.String()), "fires if many calls fail for a while")
	p.text("")
	p.bar("calls", plain, f.perSecond/fullBar, fmt.Sprintf("%.0f/s", f.perSecond))
	p.bar("failing", failingHue(f.failing), f.failing, fmt.Sprintf("%.0f %%", 100*f.failing))
	p.text("paid     %7d      refused by the breaker %6d", f.sum.Succeeded, f.sum.RefusedOpen)
	p.text("failed   %7d      refused by the limit   %6d", f.sum.Failed, f.sum.RefusedLimited)
	p.text("")
	p.drawHistory("service", f.past, func(s interval) (string, textColor) { return behaviorMark(s.behavior), behaviorHue(s.behavior) })
	p.drawHistory("failing", f.past, func(s interval) (string, textColor) { return heightBar(s.failing), failingHue(s.failing) })
	p.drawHistory("breaker", f.past, func(s interval) (string, textColor) { return breakerMark(s.breaker), breakerHue(s.breaker) })
	p.drawHistory("alert", f.past, func(s interval) (string, textColor) { return alertMark(s.alert), alertHue(s.alert) })
	p.text("")
	p.writeEvents(f.events)
	p.text("")
	p.text("OpenTelemetry  %d exports, %s", f.sum.OTelExports, f.exportsTo)
	p.text("Prometheus     %s", f.metrics)
	p.text("Live page      %s", f.live)
	p.text("Configuration  %s", f.config)
	return p.lines
}

func behaviorMark(c behavior) string {
	return [...]string{answers: "─", failsHalf: "▄", hangs: "█"}[c]
}

func breakerMark(s breaker.State) string {
	return map[breaker.State]string{breaker.Closed: "─", breaker.Open: "█", breaker.HalfOpen: "▄", breaker.Recovering: "▄"}[s]
}

func alertMark(a alertState) string {
	return [...]string{inactive: "─", pending: "▄", firing: "█"}[a]
}

// heightBar returns a bar with one eighth of the line height per eighth of the share.
func heightBar(share float64) string {
	const heights = "▁▁▂▃▄▅▆▇█"
	return string([]rune(heights)[int(math.Round(8*min(max(share, 0), 1)))])
}
