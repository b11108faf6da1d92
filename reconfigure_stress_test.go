package weir_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// configPeriod is the time during which a config is in effect. Periods touch, so two are in effect
// when one follows the other.
type configPeriod struct {
	from, to time.Duration
	config   weir.Config
}

// admission is a call that the gate allowed. It took its token at the time token or later.
type admission struct{ token, at time.Duration }

// callWait is the time from the moment at which a call came until it was made or gave up. During
// that time it may have held a token while it waited for a slot.
type callWait struct{ from, to time.Duration }

// reconfigureTest is a gate that is reconfigured at random, with callers, and an oracle that knows
// nothing about the gate but the configs and when calls were made.
type reconfigureTest struct {
	gate        *weir.Gate
	called      func() *weir.Gate // the gate that a caller uses
	reconfigure func(weir.Config) error
	start       time.Time

	mu        sync.Mutex
	periods   []configPeriod
	admitted  []admission // in order
	stays     []callWait  // in the order of their ends
	counted   int         // calls in flight that began while there was a bound
	made      int64
	refused   int64
	cancelled int64
}

func (r *reconfigureTest) now() time.Duration { return time.Since(r.start) }

// randomConfig returns a config with any combination of fields.
func randomConfig(rnd *rand.Rand) (c weir.Config) {
	if rnd.IntN(4) > 0 {
		c.Rate, c.Burst = limiter.PerSecond(float64(5+rnd.IntN(200))), 1+rnd.IntN(20)
	}
	if rnd.IntN(4) > 0 {
		c.MaxConcurrent, c.Adaptive = 1+rnd.IntN(10), rnd.IntN(2) == 0
	}
	if (c.Rate != limiter.Rate{} || c.MaxConcurrent > 0) && rnd.IntN(4) > 0 {
		c.MaxWait = time.Duration(1 + rnd.Int64N(int64(time.Second)))
	}
	c.RefuseHopeless = rnd.IntN(4) == 0
	c.Breaker = breaker.Config{FailureRate: breaker.Off, FailureRun: breaker.Off, Window: time.Duration(1+rnd.IntN(20)) * time.Second}
	return c
}

// periodsDuring returns the periods that touch a span of time.
func (r *reconfigureTest) periodsDuring(from, to time.Duration) (periods []configPeriod) {
	for _, e := range r.periods {
		if e.from <= to && e.to >= from {
			periods = append(periods, e)
		}
	}
	return periods
}

// begin notes that a call begins, which came at the given time, and requires that there was a slot
// for the call.
func (r *reconfigureTest) begin(t *testing.T, came time.Duration) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, most, token := r.now(), 0, r.now()
	for _, e := range r.periodsDuring(came, now) {
		if e.config.MaxConcurrent > 0 {
			token = came // the call may have had its token while it waited for the slot
		}
	}
	for _, e := range r.periodsDuring(now, now) {
		if e.config.MaxConcurrent == 0 {
			most = math.MaxInt
		}
		most = max(most, e.config.MaxConcurrent)
	}
	r.made++
	r.admitted = append(r.admitted, admission{token, now})
	if most == math.MaxInt {
		return func() {}
	}
	r.counted++
	require.LessOrEqual(t, r.counted, most, "calls in flight at %v", now)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counted--
	}
}

// call makes one call, which may be cancelled, and requires that it does not wait longer than
// MaxWait.
func (r *reconfigureTest) call(t *testing.T, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(bg(), time.Duration(rnd.Int64N(int64(2*time.Second))))
	defer cancel()
	began, until, took := r.now(), time.Duration(-1), time.Duration(rnd.Int64N(int64(50*time.Millisecond)))
	err := r.called().Run(ctx, func(context.Context) error {
		until = r.now()
		defer r.begin(t, began)()
		time.Sleep(took)
		return nil
	})
	if until < 0 {
		until = r.now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, hopeless := errorsAs[*weir.HopelessError](err)
	switch {
	case err == nil || hopeless:
	case errors.Is(err, weir.ErrRefused):
		r.refused++
	default:
		r.cancelled++
	}
	if until > began {
		r.stays = append(r.stays, callWait{began, until})
	}
	for _, e := range r.periodsDuring(began, until) {
		require.LessOrEqual(t, until, max(e.from, began+e.config.MaxWait), "a call that came at %v with %+v", began, e.config)
	}
}

// reconfigureTimes replaces the config n times.
func (r *reconfigureTest) reconfigureTimes(t *testing.T, rnd *rand.Rand, n int) {
	for range n {
		time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
		c := randomConfig(rnd)
		r.mu.Lock() // before the change, which takes no virtual time
		r.periods[len(r.periods)-1].to = r.now()
		r.periods = append(r.periods, configPeriod{r.now(), math.MaxInt64, c})
		r.mu.Unlock()
		require.NoError(t, r.reconfigure(c))
	}
}

// largestRate returns the largest Burst and Rate, or false if there was no Rate for a time.
func largestRate(periods []configPeriod) (burst int, perSecond float64, bounded bool) {
	for _, e := range periods {
		if (e.config.Rate == limiter.Rate{}) {
			return 0, 0, false
		}
		events, period := e.config.Rate.Ratio()
		burst, perSecond = max(burst, e.config.Burst), max(perSecond, float64(events)/period.Seconds())
	}
	return burst, perSecond, true
}

// mayReturn returns how many calls may have taken tokens before a window, and may give them back
// during the window, because they get no slot.
func (r *reconfigureTest) mayReturn(from, to time.Duration) (n int) {
	first := sort.Search(len(r.stays), func(i int) bool { return r.stays[i].to >= from })
	for _, s := range r.stays[first:] {
		if s.to > to+2*time.Second { // longer than any call waits
			break
		}
		if s.from < from {
			n++
		}
	}
	return n
}

// requireRates requires that in each window, at most as many calls took a token as the largest
// Burst and Rate and the tokens that were given back allow.
func (r *reconfigureTest) requireRates(t *testing.T) {
	for i, first := range r.admitted {
		calls := 0
		for _, call := range r.admitted[max(i-100, 0):min(i+300, len(r.admitted))] {
			if call.token < first.token || call.at < first.token {
				continue
			}
			burst, perSecond, bounded := largestRate(r.periodsDuring(first.token, call.at))
			if !bounded {
				break // longer windows are not bounded either
			}
			calls++
			most := float64(burst) + perSecond*(call.at-first.token).Seconds()
			if float64(calls) > most {
				most += float64(r.mayReturn(first.token, call.at))
			}
			require.LessOrEqual(t, float64(calls), most+1e-3, "calls from %v to %v", first.token, call.at)
		}
	}
}

// useGate lets the callers use a gate of its own.
func (r *reconfigureTest) useGate(c weir.Config) {
	r.gate = weir.New("g", c)
	r.called, r.reconfigure = func() *weir.Gate { return r.gate }, r.gate.Reconfigure
}

// useGroup lets the callers use a key of a group, by a gate that they keep or that they get for
// each call.
func (r *reconfigureTest) useGroup(c weir.Config) {
	g := hosts(weir.GroupConfig{Gate: c})
	r.gate, r.reconfigure = g.Get("key"), g.Reconfigure
	var n atomic.Int64
	r.called = func() *weir.Gate {
		if n.Add(1)%2 == 0 {
			return r.gate
		}
		return g.Get("key")
	}
}

// reconfigureUnderLoad reconfigures a gate n times while callers call, wait and leave.
func reconfigureUnderLoad(t *testing.T, n int, seed uint64, use func(*reconfigureTest, weir.Config)) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := &reconfigureTest{start: time.Now(), periods: []configPeriod{{0, math.MaxInt64, randomConfig(rnd)}}}
		use(r, r.periods[0].config)
		done := make(chan struct{})
		var callers sync.WaitGroup
		for i := range uint64(30) {
			callers.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 2+i))
				for {
					select {
					case <-done:
						return
					default:
						time.Sleep(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
						r.call(t, rnd)
					}
				}
			})
		}
		r.reconfigureTimes(t, rnd, n)
		close(done)
		callers.Wait()
		r.requireRates(t)
		r.requireNothingLost(t)
	})
}

// requireNothingLost requires that each call was counted once, and that no slot is occupied at the
// end.
func (r *reconfigureTest) requireNothingLost(t *testing.T) {
	require.Positive(t, r.refused)
	require.Positive(t, r.made)
	require.Equal(t, r.made, r.gate.Totals().Successes)
	stats := r.gate.Admissions()
	require.Equal(t, r.refused, stats.Refused)
	require.Equal(t, r.cancelled, stats.Cancelled)
	require.Zero(t, stats.Waiting)
	require.LessOrEqual(t, stats.Allowed+stats.Waited, r.made)
	require.NoError(t, r.reconfigure(weir.Config{MaxConcurrent: 50}))
	n, end := occupySlots(t, r.gate, 60)
	require.Equal(t, 50, n)
	end()
}

// In make soak the configs are replaced 10,000 times.
func TestReconfigureUnderLoad(t *testing.T) {
	for name, use := range map[string]func(*reconfigureTest, weir.Config){
		"a gate": (*reconfigureTest).useGate, "a key of a group": (*reconfigureTest).useGroup,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(testenv.Repeat(200, 1)) {
				reconfigureUnderLoad(t, 50, seed, use)
			}
		})
	}
}
