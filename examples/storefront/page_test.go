package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func outageSnapshot() snapshot {
	day := newSchedule(10 * time.Second)
	f := snapshot{
		at: 4 * time.Second, run: day.run, phase: day.at(4 * time.Second), breaker: breaker.Open, alert: firing,
		perSecond: 250, failing: 0.98,
		sum:       summary{Succeeded: 576, Failed: 63, RefusedOpen: 253, RefusedLimited: 227, OTelExports: 4},
		events:    day.begunPhases(4 * time.Second),
		exportsTo: "to out.json", metrics: "http://127.0.0.1:1234/metrics", live: "http://127.0.0.1:1234/debug/weir/", config: "/tmp/weir.yaml",
	}
	f.past.add(snapshot{at: 0, run: f.run, breaker: breaker.Closed})
	f.past.add(snapshot{at: 1800 * time.Millisecond, run: f.run, breaker: breaker.Closed})
	f.past.add(f)
	return f
}

func TestPageShowsAnOutage(t *testing.T) {
	const want = ` weir storefront, 4.0 s of 10.0 s
 now      FAILING    the service fails every other call
 breaker  OPEN       opens if many calls fail, and then sends none
 alert    FIRING     fires if many calls fail for a while

 calls    █████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░  250/s
 failing  █████████████████████████████████████████████████░  98 %
 paid         576      refused by the breaker    253
 failed        63      refused by the limit      227

 service  ──────────▄▄▄▄▄▄▄▄▄▄▄·····························
 failing  ▁▁▁▁▁▁▁▁▁▁███████████·····························
 breaker  ──────────███████████·····························
 alert    ──────────███████████·····························

   0.0s  healthy: the service answers
   1.2s  rush: more customers come than the limit allows
   2.2s  failing: the service fails every other call


 OpenTelemetry  4 exports, to out.json
 Prometheus     http://127.0.0.1:1234/metrics
 Live page      http://127.0.0.1:1234/debug/weir/
 Configuration  /tmp/weir.yaml`

	require.Equal(t, want, strings.Join(page(outageSnapshot(), 80, false), "\n"))
}

func TestPageFitsTheTerminal(t *testing.T) {
	for _, width := range []int{0, 1, 9, 10, 40, 80} {
		lines := page(outageSnapshot(), width, false)
		require.LessOrEqual(t, len(lines), 24, "lines")
		for _, line := range lines {
			require.LessOrEqualf(t, utf8.RuneCountInString(line), width, "%q", line)
		}
	}
}

func TestColorChangesOnlyColors(t *testing.T) {
	colored := strings.Join(page(outageSnapshot(), 80, true), "\n")
	require.Contains(t, colored, "\x1b[31mOPEN")
	for _, code := range []string{"\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		colored = strings.ReplaceAll(colored, code, "")
	}

	var bare []string
	for line := range strings.Lines(colored) {
		bare = append(bare, strings.TrimRight(line, " \n"))
	}
	require.Equal(t, page(outageSnapshot(), 80, false), bare)
}

func TestHistoryKeepsTheWorstValuesOfAnInterval(t *testing.T) {
	var h history
	at := func(state breaker.State, failing float64, alerts alertState) {
		h.add(snapshot{at: time.Second, run: time.Minute, breaker: state, failing: failing, alert: alerts})
	}
	at(breaker.Closed, 0.1, inactive)
	at(breaker.HalfOpen, 0.9, pending)
	at(breaker.Open, 0.3, firing)
	at(breaker.HalfOpen, 0.2, inactive)

	require.Equal(t, history{{breaker: breaker.Open, failing: 0.9, alert: firing}}, h)
	h.add(snapshot{at: 2 * time.Minute, run: time.Minute})
	require.Len(t, h, columns, "a late snapshot belongs to the last interval")
}

func TestLineHasNewEvents(t *testing.T) {
	f := outageSnapshot()
	require.Equal(t, "  4.0s  failing    open       250 calls/s  failing  98%  refused 253 open, 227 limited  alert firing",
		line(f, nil))
	require.True(t, strings.HasSuffix(line(f, []event{{text: "this"}, {text: "that"}}), "alert firing  (this; that)"))
}
