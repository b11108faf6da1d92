package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-go/weir/breaker"
)

// line says in one line what a frame shows.
func line(f frame, news []event) string {
	s := fmt.Sprintf("%5.1fs  %-9s  %-9s  %3.0f calls/s  failing %3.0f%%  refused %d open, %d limited  alert %s",
		f.at.Seconds(), f.phase.name, f.breaker, f.perSecond, 100*f.failing, f.sum.RefusedOpen, f.sum.RefusedLimited, f.alert)
	if len(news) > 0 {
		s += "  (" + texts(news) + ")"
	}
	return s
}

// page draws a frame as lines no wider than width.
func page(f frame, width int, color bool) []string {
	p := pen{width: width, color: color}
	p.text("weir storefront, %.1f s of %.1f s", min(f.at, f.run).Seconds(), f.run.Seconds())
	p.text("")
	p.labelled("now", conductHue(f.phase.does), strings.ToUpper(f.phase.name), f.phase.tells)
	p.labelled("breaker", breakerHue(f.breaker), strings.ToUpper(string(f.breaker)), fmt.Sprintf("opens at %.0f %% failures, then leaves the service alone", 100*failureLimit))
	p.labelled("alert", alertHue(f.alert), strings.ToUpper(f.alert.String()), fmt.Sprintf("when more than %.0f %% fail for a while", 100*tooMany))
	p.text("")
	p.bar("calls", plain, f.perSecond/(2*ordersPerSecond), fmt.Sprintf("%.0f/s", f.perSecond))
	p.bar("failing", failingHue(f.failing), f.failing, fmt.Sprintf("%.0f %%", 100*f.failing))
	p.text("paid     %7d      refused by the breaker %6d", f.sum.Succeeded, f.sum.RefusedOpen)
	p.text("failed   %7d      refused by the limit   %6d   over %d a second", f.sum.Failed, f.sum.RefusedLimited, ordersPerSecond)
	p.text("")
	p.strip("service", f.past, func(s stretch) (string, hue) { return conductMark(s.does), conductHue(s.does) })
	p.strip("failing", f.past, func(s stretch) (string, hue) { return height(s.failing), failingHue(s.failing) })
	p.strip("breaker", f.past, func(s stretch) (string, hue) { return breakerMark(s.breaker), breakerHue(s.breaker) })
	p.strip("alert", f.past, func(s stretch) (string, hue) { return alertMark(s.alert), alertHue(s.alert) })
	p.text("")
	p.news(f.events)
	p.text("")
	p.text("OpenTelemetry  %d exports, %s", f.sum.OTelExports, f.exportsTo)
	p.text("Prometheus     %s", f.metrics)
	p.text("Live page      %s", f.live)
	return p.lines
}

func conductMark(c conduct) string {
	return [...]string{answers: "─", failsHalf: "▄", hangs: "█"}[c]
}

func breakerMark(s breaker.State) string {
	return map[breaker.State]string{breaker.Closed: "─", breaker.Open: "█", breaker.HalfOpen: "▄"}[s]
}

func alertMark(a alarm) string {
	return [...]string{inactive: "─", pending: "▄", firing: "█"}[a]
}

// height is a column an eighth of a line high for each eighth of the share.
func height(share float64) string {
	const heights = "▁▁▂▃▄▅▆▇█"
	return string([]rune(heights)[int(math.Round(8*min(max(share, 0), 1)))])
}
