package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// head says what the demo shows, and has the heads of the columns. Waiting customers are a state,
// and the others are totals.
func head(s snapshot, page string) string {
	return fmt.Sprintf(`Two shops, the same customers. Their payment service hangs from %s to %s.
One shop has a weir gate. Watch the gate at %s
      ---- without weir ---  ----- with weir -----
      waiting failed  sent*  waiting failed  sent*   * to the hanging service
          now  total  total      now  total  total
`, seconds(s.outage.from.Sub(s.start)), seconds(s.outage.to.Sub(s.start)), page)
}

// row shows both shops at one time.
func row(s snapshot) string {
	return fmt.Sprintf("%3.0f s %7d %6d %6d  %7d %6d %6d  %s\n", s.now.Sub(s.start).Seconds(),
		s.without.waiting, s.without.failed, s.without.sent,
		s.with.waiting, s.with.failed, s.with.sent, words(s))
}

// words says what a row shows.
func words(s snapshot) string {
	without, with := s.without.isWell(), s.with.isWell()
	switch {
	case s.now.Before(s.outage.from):
		return "both shops are well"
	case s.now.Before(s.outage.to) && s.opened == 0:
		return "service hangs; weir refuses"
	case s.now.Before(s.outage.to) && len(s.alerts) == 0:
		return "the breaker is open"
	case s.now.Before(s.outage.to):
		return "breaker open, alert sent"
	case without && with:
		return "both shops are well again"
	case with:
		return "only with weir: well again"
	case without:
		return "without weir: well again"
	default:
		return "the service answers again"
	}
}

// end compares the shops, says what to try next, and ends with the figures as JSON.
func end(s snapshot) string {
	var b strings.Builder
	line := func(label string, without, with any) { fmt.Fprintf(&b, "%-40s%14v%14v\n", label, without, with) }
	b.WriteString("\n")
	line("", "without weir", "with weir")
	line("customers waiting, at most", s.without.mostWaiting, s.with.mostWaiting)
	line("failed payments, refused ones too", s.without.failed, s.with.failed)
	line("calls sent to the hanging service", s.without.sent, s.with.sent)
	line("well again, from the end of the outage", wellAgain(s.without, s.outage), wellAgain(s.with, s.outage))
	line("the person on call is alerted", "never", alertedAfter(s))
	b.WriteString(`Next: make demo-fleet, "Wrap a call" in README.md, or a service that drops stale
calls, which helps the shop without weir: go run -C examples ./storefront -drop
`)
	figures, err := json.Marshal(struct {
		Failed     int `json:"failed"`
		FailedWeir int `json:"failed_weir"`
		Sent       int `json:"sent"`
		SentWeir   int `json:"sent_weir"`
		Opened     int `json:"opened"`
		Alerts     int `json:"alerts"`
	}{s.without.failed, s.with.failed, s.without.sent, s.with.sent, s.opened, len(s.alerts)})
	if err != nil {
		panic(err) // integers can always be encoded
	}
	return b.String() + string(figures) + "\n"
}

// wellAgain says how long after the outage a shop was well again.
func wellAgain(f figures, o outage) string {
	if !f.isWell() || f.paidSince.Before(o.to) {
		return "not yet"
	}
	return seconds(f.paidSince.Sub(o.to))
}

// alertedAfter says how long after the begin of the outage the person on call was alerted.
func alertedAfter(s snapshot) string {
	if len(s.alerts) == 0 {
		return "not yet"
	}
	return "after " + seconds(s.alerts[0].Sub(s.outage.from))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
