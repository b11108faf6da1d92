package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

const (
	outageBegins = 2 * time.Minute
	outageEnds   = 14 * time.Minute
	flappingEnds = 8 * time.Minute
	recordingEnd = 26 * time.Minute
)

// An outage may be total, partial, slow, hanging, of one host or of all hosts. During each of them
// a page fires once and resolves once, at short and long scrape intervals. A breaker that is
// healthy, disabled or in shadow mode never pages. A service that fails and recovers repeatedly
// causes one ticket. A service that stays down causes no ticket, however often its breaker probes
// it. A breaker that closes within each minute does not page, though it is down at each scrape.
func TestOutagePagesOnce(t *testing.T) {
	all := recordOutage(t)
	want := []string{
		"BreakerGroupOpen hosts", "BreakerGroupOpen many", "BreakerGroupOpen one",
		"BreakerOpen forced", "BreakerOpen hanging", "BreakerOpen partial", "BreakerOpen quiet", "BreakerOpen refused", "BreakerOpen slow",
	}
	for scrape, phase := range map[time.Duration]time.Duration{time.Second: 0, 15 * time.Second: 7 * time.Second, time.Minute: 31 * time.Second} {
		t.Run(scrape.String(), func(t *testing.T) {
			health := healthRules(intervals{evaluation: 5 * time.Second, scrape: scrape})
			dir, every := writeRules(t, health), max(min(scrape, 15*time.Second), 5*time.Second)
			// Two scrapes and two evaluations, and a minute until a client with few calls notices.
			slack := 2*scrape + 2*every + time.Minute
			const recovery = time.Minute // four calls of a client with few calls
			const pages = `sum by (alertname, weir_breaker_name) (ALERTS{alertstate="firing",severity="page"}%s)`
			firing := fmt.Sprintf(pages, "")
			before := fmt.Sprintf(pages, " offset "+every.String())
			starts := fmt.Sprintf(`count_over_time((%s unless %s)[%s:%s])`, firing, before, recordingEnd-phase, every)
			flapping := strings.NewReplacer(`severity="page"`, `alertname="BreakerFlapping",weir_breaker_name="flapping"`)
			ticket := []string{"BreakerFlapping flapping"}
			probing := strings.NewReplacer(`severity="page"`, `alertname="BreakerFlapping",weir_breaker_name!~"flapping|brief|minutely"`)
			promtoolTest(t, dir, "weir_breaker_name", scrape, every, all.samplesAt(scrape, phase), []expectation{
				{outageBegins - phase, flapping.Replace(firing), nil},
				{flappingEnds - phase, flapping.Replace(firing), ticket},
				{flappingEnds - phase + 15*time.Minute + slack, flapping.Replace(firing), nil},
				{recordingEnd - phase, flapping.Replace(starts), ticket},
				{recordingEnd - phase, probing.Replace(starts), nil},
				{outageBegins - phase + time.Minute, firing, nil},
				{outageBegins - phase + time.Minute + slack, firing, want},
				{outageEnds - phase, firing, want},
				{outageEnds - phase + 5*time.Minute + slack + recovery, firing, nil},
				{recordingEnd - phase, starts, want},
			})
		})
	}
}

// recordedSeries holds the value of each series at each second, or "_" if there was none.
type recordedSeries struct {
	values map[string][]string
	names  map[*stat.Series]string
}

// samplesAt returns the values at each scrape, the first at phase.
func (r recordedSeries) samplesAt(scrape, phase time.Duration) (list []series) {
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		var seen []string
		for at := phase; at < recordingEnd; at += scrape {
			seen = append(seen, r.values[name][at/time.Second])
		}
		list = append(list, series{name, strings.Join(seen, " ")})
	}
	return list
}

func (r recordedSeries) recordSecond(second int, sources ...stat.Source) {
	for _, source := range sources {
		for s, v := range source.Observe {
			switch s.Instrument {
			case instrument.BreakerState, instrument.BreakerTransitions, instrument.BreakerCalls:
				if r.names[s] == "" {
					r.names[s] = seriesText(s)
				}
				name := r.names[s]
				for len(r.values[name]) < second {
					r.values[name] = append(r.values[name], "_")
				}
				r.values[name] = append(r.values[name], strconv.FormatFloat(v, 'g', -1, 64))
			}
		}
	}
}

// seriesText formats a series as Prometheus does.
func seriesText(s *stat.Series) string {
	name := strings.ReplaceAll(s.Instrument.Name, ".", "_")
	if s.Instrument.Kind == stat.Counter {
		name += "_total"
	}
	var labels []string
	for n, key := range s.Instrument.Attrs {
		if s.Values[n] != "" {
			labels = append(labels, fmt.Sprintf("%s=%q", strings.ReplaceAll(key, ".", "_"), s.Values[n]))
		}
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

var errDown = errors.New("down")

// recordOutage records breakers during an outage in virtual time.
func recordOutage(t *testing.T) recordedSeries {
	r := recordedSeries{map[string][]string{}, map[*stat.Series]string{}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		outage := func() bool { at := time.Since(start); return at >= outageBegins && at < outageEnds }
		time.Sleep(370 * time.Millisecond) // calls are not made at the moments of scrapes
		sources := append(failingSources(ctx, start, outage), healthySources(ctx, start, outage)...)
		for second := range int(recordingEnd / time.Second) {
			time.Sleep(time.Until(start.Add(time.Duration(second)*time.Second + time.Second/2)))
			r.recordSecond(second, sources...)
		}
		cancel()
	})
	return r
}

// atEachInterval calls f with the number of the call at each interval until ctx is done.
func atEachInterval(ctx context.Context, interval time.Duration, f func(n int)) {
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				f(n)
			}
		}
	}()
}

// callThatTakes returns a call that takes d and then returns err. If d is 0, it makes no timer:
// several goroutines of a bubble that find a timer due at once crash Go 1.26's race detector.
func callThatTakes(d time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if d == 0 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		return err
	}
}

// outageResult returns the result of a call, which is an error during the outage.
func outageResult(down bool) error {
	if down {
		return errDown
	}
	return nil
}

// failingSources are the sources that must page: a breaker or a group for every kind of outage.
func failingSources(ctx context.Context, start time.Time, outage func() bool) []stat.Source {
	refused, hanging := breaker.New("refused", breaker.Config{}), breaker.New("hanging", breaker.Config{})
	slow, quiet := breaker.New("slow", breaker.Config{SlowCall: time.Second}), breaker.New("quiet", breaker.Config{ConsecutiveFailures: 3})
	forced := breaker.New("forced", breaker.Config{})
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
	many := breaker.NewGroup[string]("many", breaker.GroupConfig{MaxSeries: breaker.Off, Breaker: breaker.Config{ConsecutiveFailures: 5}})
	atEachInterval(ctx, 50*time.Millisecond, func(int) { _ = refused.Run(ctx, callThatTakes(0, outageResult(outage()))) })
	atEachInterval(ctx, 100*time.Millisecond, func(int) {
		if outage() {
			go func() { _ = hanging.Run(ctx, callThatTakes(10*time.Second, errDown)) }()
			go func() { _ = slow.Run(ctx, callThatTakes(3*time.Second, nil)) }()
			return
		}
		_, _ = hanging.Run(ctx, callThatTakes(0, nil)), slow.Run(ctx, callThatTakes(0, nil))
	})
	atEachInterval(ctx, 15*time.Second, func(int) { go func() { _ = quiet.Run(ctx, callThatTakes(2*time.Second, outageResult(outage()))) }() })
	atEachInterval(ctx, 50*time.Millisecond, func(n int) {
		_ = hosts.Get(fmt.Sprint("host-", n%3)).Run(ctx, callThatTakes(0, outageResult(outage())))
		_ = many.Get(fmt.Sprint("host-", n%20)).Run(ctx, callThatTakes(0, outageResult(outage())))
	})
	partial := breaker.New("partial", breaker.Config{})
	one := breaker.NewGroup[string]("one", breaker.GroupConfig{})
	atEachInterval(ctx, 50*time.Millisecond, func(n int) {
		_ = partial.Run(ctx, callThatTakes(0, outageResult(outage() && n%10 < 7)))
		_ = one.Get(fmt.Sprint("host-", n%4)).Run(ctx, callThatTakes(0, outageResult(outage() && n%4 == 3)))
	})
	time.AfterFunc(outageBegins-time.Since(start), func() { forced.Force(breaker.ForcedOpen, "") })
	time.AfterFunc(outageEnds-time.Since(start), forced.Release)
	return []stat.Source{refused, hanging, slow, quiet, forced, hosts, many, partial, one}
}

// healthySources are the sources that must not page.
func healthySources(ctx context.Context, start time.Time, outage func() bool) []stat.Source {
	fine, brief := breaker.New("fine", breaker.Config{}), breaker.New("brief", breaker.Config{})
	flapping := breaker.New("flapping", breaker.Config{Recovery: breaker.Off})
	minutely := breaker.New("minutely", breaker.Config{})
	shadow, disabled := breaker.New("shadow", breaker.Config{Force: breaker.Shadow}), breaker.New("disabled", breaker.Config{Force: breaker.Disabled})
	turns := breaker.NewGroup[string]("turns", breaker.GroupConfig{MaxSeries: breaker.Off, Breaker: breaker.Config{ConsecutiveFailures: 3}})
	atEachInterval(ctx, 50*time.Millisecond, func(n int) {
		_ = fine.Run(ctx, callThatTakes(0, outageResult(n%100 == 0)))
		_ = flapping.Run(ctx, callThatTakes(0, outageResult(outage() && time.Since(start) < flappingEnds && time.Since(start)%(100*time.Second) < 20*time.Second)))
		second := time.Since(start) % time.Minute
		_ = minutely.Run(ctx, callThatTakes(0, outageResult(outage() && second >= 10*time.Second && second < 45*time.Second)))
		_ = brief.Run(ctx, callThatTakes(0, outageResult(time.Since(start)%(5*time.Minute) < 20*time.Second)))
		_, _ = shadow.Run(ctx, callThatTakes(0, outageResult(outage()))), disabled.Run(ctx, callThatTakes(0, outageResult(outage())))
	})
	atEachInterval(ctx, 250*time.Millisecond, func(int) {
		// In every 25s one host fails for 20s, each time a different host.
		turn, phase := time.Since(start)/(25*time.Second), time.Since(start)%(25*time.Second)
		for host := range time.Duration(40) {
			_ = turns.Get(fmt.Sprint("host-", int(host))).Run(ctx, callThatTakes(0, outageResult(host == turn%40 && phase < 20*time.Second)))
		}
	})
	return []stat.Source{fine, flapping, brief, minutely, shadow, disabled, turns}
}

// expectation is the alerts for which an expression is 1 at a time.
type expectation struct {
	at   time.Duration
	expr string
	want []string // the alert's name, and the value of the label that identifies it
}

// promtoolTest checks the expectations at the first evaluation at or after their times. The value
// of label identifies an alert.
func promtoolTest(t *testing.T, dir, label string, scrape, evaluation time.Duration, input []series, list []expectation) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [rules.yml]\nevaluation_interval: %s\ntests:\n- interval: %s\n  input_series:\n", evaluation, scrape)
	for _, s := range input {
		fmt.Fprintf(&b, "  - series: '%s'\n    values: '%s'\n", s.name, s.values)
	}
	b.WriteString("  promql_expr_test:\n")
	for _, e := range list {
		at := (e.at + evaluation - 1).Truncate(evaluation)
		fmt.Fprintf(&b, "  - expr: '%s'\n    eval_time: %s\n    exp_samples:\n", e.expr, at)
		for _, one := range e.want {
			i := strings.LastIndex(one, " ") // a rule may have spaces in its name
			fmt.Fprintf(&b, "    - labels: '{alertname=\"%s\",%s=\"%s\"}'\n      value: 1\n", one[:i], label, one[i+1:])
		}
	}
	promtool(t, dir, "test.yml", b.String(), "test", "rules")
}
