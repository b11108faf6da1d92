package weirconfig_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/weirconfig"
)

// configPeriod is the time during which an object had a config. One period ends at the moment when
// the next begins, so both configs are in effect at the moment of an update.
type configPeriod struct {
	from, to   time.Duration
	removed    bool
	rate       float64 // per second
	burst      int
	concurrent int
	maxWait    time.Duration
}

// gateUnderLoad is a gate that files change while callers use it, with the facts by which the test
// judges it: the configs, and when calls were made.
type gateUnderLoad struct {
	gate  func() *weir.Gate
	start time.Time

	mu       sync.Mutex
	periods  []configPeriod
	times    []time.Duration // at which calls began
	inFlight int
	made     int64
	refused  int64
}

// nextConfig returns the fields of another config, and notes this config for the time after the
// update. If calls may wait for tokens, there are 1000 slots, so that each call finds a slot at
// once: a call that waits for a slot with its token may give the token back.
func (l *gateUnderLoad) nextConfig(r *rand.Rand, removed bool) (fields string) {
	last := len(l.periods) - 1
	e := configPeriod{to: math.MaxInt64, removed: true}
	if last >= 0 {
		e = l.periods[last]
		l.periods[last].to = time.Since(l.start)
	}
	e.from, e.to, e.removed = time.Since(l.start), math.MaxInt64, removed
	if !removed {
		e.rate, e.burst, e.concurrent, e.maxWait = float64(5+r.IntN(200)), 1+r.IntN(20), 1+r.IntN(10), 0
		if r.IntN(2) == 0 {
			e.concurrent, e.maxWait = 1000, time.Duration(1+r.IntN(500))*time.Millisecond
		}
	}
	l.periods = append(l.periods, e)
	return fmt.Sprintf("rate: %v/s, burst: %d, max_concurrent: %d, max_wait: %v, breaker: {failure_rate: off, failure_run: off}",
		e.rate, e.burst, e.concurrent, e.maxWait)
}

// periodsDuring returns the periods that touch a span of time.
func (l *gateUnderLoad) periodsDuring(from, to time.Duration) (periods []configPeriod) {
	for _, e := range l.periods {
		if e.from <= to && e.to >= from {
			periods = append(periods, e)
		}
	}
	return periods
}

// call makes a call.
func (l *gateUnderLoad) call(t *testing.T, took time.Duration) {
	came, ran := time.Since(l.start), false
	err := l.gate().Run(t.Context(), func(context.Context) error {
		ran = true
		l.begin(t)
		time.Sleep(took)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inFlight--
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	if ran {
		require.NoError(t, err)
		return
	}
	l.refused++
	require.ErrorIs(t, err, weir.ErrRefused)
	now := time.Since(l.start)
	if strings.Contains(err.Error(), "removed") {
		require.True(t, slices.ContainsFunc(l.periodsDuring(now, now), func(e configPeriod) bool { return e.removed }))
		return
	}
	longest := time.Duration(0)
	for _, e := range l.periodsDuring(came, now) {
		longest = max(longest, e.maxWait)
	}
	require.LessOrEqual(t, now, came+longest)
}

// begin notes that a call begins, and requires that the object was in a file and had a slot for it.
func (l *gateUnderLoad) begin(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, most := time.Since(l.start), 0
	for _, e := range l.periodsDuring(now, now) {
		if !e.removed {
			most = max(most, e.concurrent)
		}
	}
	l.inFlight++
	require.LessOrEqual(t, l.inFlight, most, "calls in flight at %v", now)
	l.times = append(l.times, now)
}

// requireRates requires that in no window more calls began than its largest burst and its largest
// rate allow.
func (l *gateUnderLoad) requireRates(t *testing.T) {
	for i, from := range l.times {
		for n, to := range l.times[i:min(i+300, len(l.times))] {
			burst, rate := 0, 0.0
			for _, e := range l.periodsDuring(from, to) {
				burst, rate = max(burst, e.burst), max(rate, e.rate)
			}
			require.LessOrEqual(t, float64(n+1), float64(burst)+rate*(to-from).Seconds()+1e-3, "from %v to %v", from, to)
		}
	}
}

// requireNothingLost requires that each call is counted once, and that no call waits or has a slot.
func (l *gateUnderLoad) requireNothingLost(t *testing.T) {
	g := l.gate()
	late := int64(0) // results of calls that were in flight when the object was removed
	for series, v := range g.Breaker().Observe {
		if series.Instrument.Name == "weir.breaker.late_results" {
			late = int64(v)
		}
	}
	totals, stats, ran := g.Totals(), g.Stats(), int64(len(l.times))
	require.Positive(t, ran)
	require.Positive(t, l.refused)
	require.Equal(t, l.made, ran+l.refused)
	require.Equal(t, ran, totals.Successes+late)
	require.Equal(t, l.refused, totals.Refused+stats.Refused)
	require.Equal(t, ran, stats.Allowed+stats.Waited, "no token is minted or lost")
	require.Zero(t, stats.Waiting)
	require.Zero(t, l.inFlight)
}

// updateUnderLoad applies n whole files while callers call and wait.
func updateUnderLoad(t *testing.T, n int, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 1))
		pay, key := &gateUnderLoad{start: time.Now()}, &gateUnderLoad{start: time.Now()}
		file := func() string {
			text := "gates: {other: }\n"
			if removed := len(pay.periods) > 0 && r.IntN(6) == 0; removed {
				pay.nextConfig(r, true)
			} else {
				text = "gates: {other: , pay: {" + pay.nextConfig(r, false) + "}}\nrules: [{name: pay, of: pay, value: failure_rate, span: 5m, when: above 5%}]\n"
			}
			if removed := len(key.periods) > 0 && r.IntN(6) == 0; removed {
				key.nextConfig(r, true)
				return text
			}
			return text + "groups: {tenants: {max_keys: 8, gate: {" + key.nextConfig(r, false) + "}}}\n"
		}
		set := newSet(t, file(), weirconfig.Config{})
		pay.gate = func() *weir.Gate { return set.Gate("pay") }
		key.gate = func() *weir.Gate { return set.Group("tenants").Get("key") }
		stop := make(chan struct{})
		var callers sync.WaitGroup
		for i := range uint64(30) {
			callers.Go(func() {
				r := rand.New(rand.NewPCG(seed, 2+i))
				for {
					select {
					case <-stop:
						return
					default:
					}
					time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
					[]*gateUnderLoad{pay, key}[i%2].call(t, time.Duration(r.Int64N(int64(50*time.Millisecond))))
				}
			})
		}
		for range n {
			time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			if r.IntN(5) == 0 {
				require.ErrorIs(t, update(t, set, "gates: {other: {rate: 1/h}}\ngroups: {tenants: {max_keys: 9}}"), weirconfig.ErrRestart)
			}
			pay.mu.Lock() // the update takes no virtual time
			key.mu.Lock()
			text := file()
			pay.mu.Unlock()
			key.mu.Unlock()
			require.NoError(t, update(t, set, text))
			set.Monitor().Evaluate(time.Now())
		}
		close(stop)
		callers.Wait()
		for _, l := range []*gateUnderLoad{pay, key} {
			l.requireRates(t)
			l.requireNothingLost(t)
		}
	})
}

// In make soak there are 10,000 updates.
func TestWholeFilesUnderLoad(t *testing.T) {
	for seed := range uint64(testenv.Repeat(200, 1)) {
		updateUnderLoad(t, 50, seed)
	}
}
