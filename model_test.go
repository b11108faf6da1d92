package weir_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// TestGatesKeepTheirBoundsWhateverHappens makes random calls through gates while everything that
// can be changed is changed, and compares what happened with what the documents promise. The checks
// know only what a user can see: when calls began and ended, their errors, and the statistics.
//
// With WEIR_SOAK=true there are 50 times as many runs.
func TestGatesKeepTheirBoundsWhateverHappens(t *testing.T) {
	seeds := uint64(testenv.Repeat(18_000, 360))
	operations, calls := 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newGateModel(t, seed)
				m.run()
				operations += m.operations
				calls += len(m.calls)
			})
		})
	}
	t.Logf("%d operations, %d of them calls, in %d runs", operations, calls, seeds)
}

// gateModel is one run. Its gates are one of New, two of Join that share limits, or those of three
// keys of a group that may have room for only two.
type gateModel struct {
	*testing.T
	*rand.Rand
	gates       func(key int) *weir.Gate
	keys        int
	crowded     bool                      // the group has room for fewer keys
	reconfigure func(weir.Config) error   // nil for gates of Join
	group       *weir.Group[int]          // nil for other gates
	shed        *inflight.Limiter         // in front of all calls; may be nil
	most        func(c weir.Config) limit // of one scope
	scope       func(key int) int         // which calls are counted together
	operations  int

	configs []effective // in order of time
	forgets []keyTime
	holds   []hold

	mu       sync.Mutex
	calls    []*modelCall
	reserved []error // the results of Reserve
}

// limit is how many calls may begin in a window of time: burst, and one more per interval.
type limit struct {
	burst    int
	interval time.Duration // 0 for no limit
	window   time.Duration // of a log with burst calls per window; 0 for a token bucket
}

type effective struct {
	at     time.Time
	config weir.Config
}

type keyTime struct {
	key int
	at  time.Time
}

type hold struct {
	keyTime
	d time.Duration
}

// modelCall is a call, as its caller sees it.
type modelCall struct {
	key                 int
	asked, began, ended time.Time // began is zero if the function was not called
	inGate              time.Time // when the gate was called, after the shed
	cancel              context.CancelFunc
	cancelled           bool
	err                 error
	returned            bool
}

func newGateModel(t *testing.T, seed uint64) *gateModel {
	m := &gateModel{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), keys: 1}
	c := m.randomConfig()
	switch seed % 4 {
	case 0, 1:
		g := weir.New("g", c)
		m.gates, m.reconfigure = func(int) *weir.Gate { return g }, g.Reconfigure
	case 2:
		m.keys = 3
		m.crowded = m.IntN(2) == 0
		maxKeys := 3
		if m.crowded {
			maxKeys = 2
		}
		m.group = weir.NewGroup[int]("g", weir.GroupConfig{Gate: c, MaxKeys: maxKeys, MaxSeries: breaker.Off})
		m.gates, m.reconfigure = m.group.Get, m.group.ReconfigureGates
	default:
		m.keys = 2
		c = weir.Config{Rate: limiter.Per(1, time.Second), Burst: 1 + m.IntN(4), MaxConcurrent: 1 + m.IntN(3), MaxWait: time.Duration(1+m.IntN(20)) * 500 * time.Millisecond}
		window := time.Duration(1+m.IntN(4)) * 500 * time.Millisecond
		log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: c.Burst, Window: window})
		slots := inflight.New(inflight.Config{Limit: c.MaxConcurrent})
		var joined [2]*weir.Gate
		for i := range joined {
			name := fmt.Sprint("g", i)
			joined[i] = weir.Join(name, weir.Parts{Breaker: breaker.New(name, breaker.Config{}), Limiter: log, InFlight: slots, MaxWait: c.MaxWait})
		}
		m.gates = func(key int) *weir.Gate { return joined[key] }
		m.most = func(c weir.Config) limit { return limit{burst: c.Burst, window: window} }
	}
	m.scope = func(key int) int { return key }
	if m.most == nil {
		m.most = func(c weir.Config) limit {
			if c.Rate == (limiter.Rate{}) {
				return limit{}
			}
			events, per := c.Rate.Ratio()
			return limit{burst: c.Burst, interval: per / time.Duration(events)}
		}
	} else {
		m.scope = func(int) int { return 0 }
	}
	if m.IntN(3) == 0 {
		m.shed = inflight.New(inflight.Config{Limit: 6, MaxWaiters: 5, Queue: inflight.Queue{Target: time.Second}})
	}
	m.configs = []effective{{time.Now(), c}}
	return m
}

// randomConfig returns a config of which each part may be missing.
func (m *gateModel) randomConfig() (c weir.Config) {
	if m.IntN(5) > 0 {
		c.Rate, c.Burst = limiter.Per(1, time.Duration(1+m.IntN(8))*250*time.Millisecond), 1+m.IntN(4)
	}
	if m.IntN(4) > 0 {
		c.MaxConcurrent = 1 + m.IntN(4)
	}
	if (c.Rate != limiter.Rate{} || c.MaxConcurrent > 0) && m.IntN(5) > 0 {
		c.MaxWait = time.Duration(m.IntN(30)) * 500 * time.Millisecond
	}
	return c
}

func (m *gateModel) run() {
	for range 120 {
		m.operations++
		m.step()
		m.check(m.gatesAreSane(), "gates")
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	m.release()
	time.Sleep(time.Hour)
	synctest.Wait()
	m.checkCalls()
	m.checkEnd()
	if m.reconfigure != nil {
		require.NoError(m.T, m.reconfigure(weir.Config{MaxConcurrent: 1}))
	}
	for key := range m.keys {
		time.Sleep(time.Hour)
		require.Zero(m.T, callsInFlight(m.gates(key)), "calls in flight at the end")
		require.NoError(m.T, m.gates(key).Run(bg(), succeed))
	}
}

func (m *gateModel) check(err error, what string) {
	m.Helper()
	require.NoError(m.T, err, what)
}

func (m *gateModel) step() {
	key := m.IntN(m.keys)
	switch m.IntN(40) {
	case 0, 1:
		m.hold(key)
	case 2, 3, 4:
		if m.reconfigure != nil {
			m.change()
		}
	case 5:
		if m.group != nil {
			m.forgets = append(m.forgets, keyTime{key, time.Now()})
			m.group.Forget(key)
		}
	case 6:
		if m.IntN(3) == 0 {
			m.gates(key).Breaker().Force([]breaker.State{breaker.ForcedOpen, breaker.ForcedClosed}[m.IntN(2)], "")
		}
	case 7, 8:
		m.release()
	case 9, 10, 11:
		m.cancelOne()
	case 12, 13:
		m.reserve(key)
	case 14, 15, 16, 17, 18, 19:
		time.Sleep(time.Duration(m.IntN(12)) * 125 * time.Millisecond)
	case 20:
		time.Sleep(time.Duration(m.IntN(30)) * time.Second)
	default:
		m.call(key)
	}
	synctest.Wait()
}

// change replaces the config, or only adds or removes the bound.
func (m *gateModel) change() {
	c := m.randomConfig()
	if m.IntN(2) == 0 {
		most := c.MaxConcurrent
		if c = m.configs[len(m.configs)-1].config; c.MaxConcurrent == 0 {
			c.MaxConcurrent = max(most, 1)
		} else if c.MaxConcurrent = 0; c.Burst == 0 {
			c.MaxWait = 0
		}
	}
	require.NoError(m.T, m.reconfigure(c))
	m.configs = append(m.configs, effective{time.Now(), c})
}

func (m *gateModel) hold(key int) {
	d := time.Duration(1+m.IntN(8)) * 500 * time.Millisecond
	m.holds = append(m.holds, hold{keyTime{key, time.Now()}, d})
	m.gates(key).Hold(d)
}

// release lifts all overrides.
func (m *gateModel) release() {
	for key := range m.keys {
		m.gates(key).Breaker().Release()
	}
}

// call starts a call that takes some time and sometimes fails.
func (m *gateModel) call(key int) {
	took := time.Duration(m.IntN(20)) * 250 * time.Millisecond
	ctx, cancel := context.WithCancel(bg())
	if m.IntN(8) == 0 {
		ctx, cancel = context.WithTimeout(bg(), time.Duration(m.IntN(10))*500*time.Millisecond)
	}
	c := &modelCall{key: key, asked: time.Now(), cancel: cancel}
	m.mu.Lock()
	m.calls = append(m.calls, c)
	m.mu.Unlock()
	go func() {
		defer cancel()
		err := m.shedOrRun(ctx, c, func(context.Context) error {
			m.mu.Lock()
			c.began = time.Now()
			m.mu.Unlock()
			time.Sleep(took)
			return nil
		})
		m.mu.Lock()
		defer m.mu.Unlock()
		c.err, c.ended, c.returned = err, time.Now(), true
	}()
}

func (m *gateModel) shedOrRun(ctx context.Context, c *modelCall, fn func(context.Context) error) error {
	run := func(ctx context.Context) error {
		m.mu.Lock()
		c.inGate = time.Now()
		m.mu.Unlock()
		return m.gates(c.key).Run(ctx, fn)
	}
	if m.shed == nil {
		return run(ctx)
	}
	return m.shed.Run(ctx, run)
}

// reserve allows a call that is given back at once, or a while later.
func (m *gateModel) reserve(key int) {
	later := time.Duration(m.IntN(3)) * 500 * time.Millisecond
	m.operations++
	go func() {
		permit, refund, err := m.gates(key).Reserve(bg())
		m.mu.Lock()
		m.reserved = append(m.reserved, err)
		m.mu.Unlock()
		if err != nil {
			return
		}
		time.Sleep(later)
		permit.Record(bg(), nil, breaker.Ignored)
		refund()
	}()
}

func (m *gateModel) cancelOne() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.Perm(len(m.calls)) {
		if c := m.calls[i]; !c.returned && c.began.IsZero() {
			c.cancelled = true
			c.cancel()
			return
		}
	}
}

// gatesAreSane returns an error if a statistic shows an impossible number.
func (m *gateModel) gatesAreSane() error {
	running := 0
	m.mu.Lock()
	for _, c := range m.calls {
		if !c.began.IsZero() && !c.returned {
			running++
		}
	}
	m.mu.Unlock()
	for key := range m.keys {
		g := m.gates(key)
		if n := callsInFlight(g); n > running+m.operations || n < -1 {
			return fmt.Errorf("%d calls in flight, of which %d were begun", n, running)
		}
		if w := g.Stats().Waiting; w < 0 {
			return fmt.Errorf("%d calls wait", w)
		}
	}
	return nil
}

// within yields the configs that were in effect at some moment from from to to.
func (m *gateModel) within(from, to time.Time) (all []weir.Config) {
	for i, e := range m.configs {
		if !e.at.After(to) && (i+1 == len(m.configs) || !m.configs[i+1].at.Before(from)) {
			all = append(all, e.config)
		}
	}
	return all
}

// forgotten reports whether a key was forgotten in a span.
func (m *gateModel) forgotten(key int, from, to time.Time) bool {
	return slices.ContainsFunc(m.forgets, func(f keyTime) bool {
		return f.key == key && !f.at.Before(from) && !f.at.After(to)
	})
}

// allowedIn returns how many calls may begin from from to to, or -1 for any number. The largest
// limits in effect during that time apply.
func (m *gateModel) allowedIn(from, to time.Time, burst func(limit) int) int {
	var all limit
	for i, c := range m.within(from, to) {
		l := m.most(c)
		if l.burst == 0 {
			return -1
		}
		all.burst = max(all.burst, burst(l))
		if i == 0 || l.interval < all.interval {
			all.interval = l.interval
		}
		all.window = l.window
	}
	span := to.Sub(from)
	if all.window > 0 {
		return all.burst * (1 + int(span/all.window))
	}
	return all.burst + int(span/all.interval)
}

// checkCalls compares all calls with the promises of the documents.
func (m *gateModel) checkCalls() {
	// of calls that began at the same moment, those that ended at once were first
	slices.SortFunc(m.calls, func(a, b *modelCall) int { return cmp.Or(a.began.Compare(b.began), a.ended.Compare(b.ended)) })
	byScope := map[int][]*modelCall{}
	for _, c := range m.calls {
		require.True(m.T, c.returned, "a call did not return")
		if !c.inGate.IsZero() {
			m.checkWait(c)
		}
		if c.began.IsZero() {
			require.Error(m.T, c.err)
			continue
		}
		require.NoError(m.T, c.err)
		byScope[m.scope(c.key)] = append(byScope[m.scope(c.key)], c)
	}
	// keys without room share a bucket, and a key may be both with and without room
	crowded := 1
	if m.crowded {
		crowded = 2
	}
	for _, calls := range byScope {
		m.checkRate(calls, crowded)
		m.checkHolds(calls)
		m.checkConcurrency(calls)
	}
}

func (m *gateModel) checkRate(calls []*modelCall, crowded int) {
	for i, first := range calls {
		for j := i; j < len(calls); j++ {
			last := calls[j]
			if m.forgotten(first.key, first.began, last.began) {
				break
			}
			most := m.allowedIn(first.began, last.began, func(l limit) int { return l.burst })
			require.False(m.T, most >= 0 && j-i+1 > crowded*most,
				"%d calls began within %s, want at most %d", j-i+1, last.began.Sub(first.began), crowded*most)
		}
	}
}

// keysHeldDuring returns the number of keys that are held at some time of the hold h.
func (m *gateModel) keysHeldDuring(h hold) int {
	held := map[int]bool{}
	for _, other := range m.holds {
		if !other.at.After(h.at.Add(longestHold(h.d))) && !h.at.After(other.at.Add(longestHold(other.d))) {
			held[other.key] = true
		}
	}
	return len(held)
}

// longestHold returns how long a hold lasts at most: it is lengthened by a random share.
func longestHold(d time.Duration) time.Duration { return d + d/10 }

// checkHolds checks that no call begins during a hold, and that a token bucket has one token after
// it. The bucket of all keys without room keeps its tokens, because other keys use it too.
func (m *gateModel) checkHolds(calls []*modelCall) {
	for _, h := range m.holds {
		if m.crowded && m.keysHeldDuring(h) == m.keys {
			continue // more than MaxKeys keys are held, so this hold may have been given up
		}
		end, n := h.at.Add(h.d), 0
		for _, c := range calls {
			if c.key != h.key || !c.began.After(h.at) || m.forgotten(h.key, h.at, c.began) {
				continue
			}
			require.False(m.T, c.began.Before(end), "a call began %s before the end of a hold", end.Sub(c.began))
			if n++; m.reconfigure == nil || len(m.within(h.at, c.began)) > 1 {
				break
			}
			l := m.most(m.within(h.at, h.at)[0])
			if idle := end.Add(time.Duration(l.burst-1) * l.interval); m.crowded && !c.began.Before(idle) {
				break // the key is like a new one, and may have room or none
			}
			most := m.allowedIn(end, c.began, func(limit) int { return 1 })
			if m.crowded && most >= 0 {
				most += m.allowedIn(end, c.began, func(l limit) int { return l.burst })
			}
			require.False(m.T, most >= 0 && n > most,
				"%d calls began within %s after a hold, want at most %d", n, c.began.Sub(end), most)
		}
	}
}

// checkConcurrency checks, whenever a call begins, how many calls have slots. Calls that began
// without a bound have none, and those that began before their key was forgotten do not count.
func (m *gateModel) checkConcurrency(calls []*modelCall) {
	bounded := func(at time.Time) (most int, always bool) {
		always = true
		for _, c := range m.within(at, at) {
			always = always && c.MaxConcurrent > 0
			most = max(most, c.MaxConcurrent)
		}
		return most, always
	}
	for i, c := range calls {
		most, ok := bounded(c.began)
		if !ok {
			continue
		}
		n := 1
		for _, other := range calls[:i] {
			if _, held := bounded(other.began); held && other.ended.After(c.began) && !m.forgotten(c.key, other.began, c.began) {
				n++
			}
		}
		require.LessOrEqual(m.T, n, most, "calls in flight of key %d", c.key)
	}
}

// checkWait checks that a call did not wait longer than any MaxWait in effect during its wait.
func (m *gateModel) checkWait(c *modelCall) {
	end := c.began
	if end.IsZero() {
		end = c.ended
	}
	for i, e := range m.configs {
		if !e.at.Before(end) || i+1 < len(m.configs) && !m.configs[i+1].at.After(c.inGate) {
			continue
		}
		last := c.inGate.Add(e.config.MaxWait)
		if last.Before(e.at) {
			last = e.at
		}
		require.False(m.T, end.After(last), "a call waited %s with a MaxWait of %s", end.Sub(c.inGate), e.config.MaxWait)
	}
}

// books are the calls by what became of them, as their callers know it.
type books struct{ allowed, limited, cancelled int64 }

func (b *books) add(err error) {
	_, full := errors.AsType[*inflight.FullError](err)
	switch {
	case err == nil:
		b.allowed++
	case full || errors.Is(err, limiter.ErrLimited):
		b.limited++
	case !errors.Is(err, weir.ErrRefused):
		b.cancelled++ // before or during a wait
	}
}

// checkEnd checks that everything has come back and that the books add up.
func (m *gateModel) checkEnd() {
	var want books
	for _, c := range m.calls {
		if !c.inGate.IsZero() {
			want.add(c.err)
		}
	}
	for _, err := range m.reserved {
		want.add(err)
	}
	var got books
	var recorded int64
	for key := range m.keys {
		g := m.gates(key)
		require.LessOrEqual(m.T, callsInFlight(g), 0, "calls in flight at the end")
		if l := g.Limiter(); l != nil {
			r := l.Take(0)
			require.Equal(m.T, r.Limit, r.Remaining, "tokens at the end")
		}
		totals := g.Totals()
		recorded += totals.Calls() + totals.Ignored
		for s, v := range g.Breaker().Observe {
			// of calls before a Force or Release
			if s.Instrument.Name == "weir.breaker.late_results" {
				recorded += int64(v)
			}
		}
		if key > 0 && m.group != nil {
			continue // the counts are those of all keys
		}
		s, observed := g.Stats(), readGate(g)
		require.Zero(m.T, s.Waiting)
		got = books{got.allowed + s.Allowed + s.Waited, got.limited + s.Refused, got.cancelled + s.Cancelled}
		if len(observed) > 1 { // otherwise there is no limit now
			require.Equal(m.T, map[string]float64{
				"allowed": float64(s.Allowed), "waited": float64(s.Waited), "refused": float64(s.Refused), "cancelled": float64(s.Cancelled),
			}, observed, "metrics")
		}
	}
	if m.group == nil { // the breakers of forgotten keys are gone
		require.Equal(m.T, want.allowed, recorded, "calls that the breakers have recorded")
	}
	require.Equal(m.T, want.limited, got.limited, "calls that limits and holds have refused")
	require.LessOrEqual(m.T, got.cancelled, want.cancelled, "calls that were cancelled while they waited")
	if !slices.ContainsFunc(m.configs, func(e effective) bool {
		return e.config.MaxWait == 0 && e.config.MaxConcurrent == 0 && e.config.Burst == 0
	}) {
		require.Equal(m.T, want.allowed, got.allowed, "calls that the limits have allowed")
	}
	if m.shed != nil {
		require.Zero(m.T, m.shed.InFlight(), "slots of the shed")
	}
}

// readGate returns the requests to the limits of a gate, by outcome.
func readGate(g *weir.Gate) map[string]float64 {
	all := map[string]float64{}
	for s, v := range g.Observe {
		if s.Instrument.Name == "weir.limiter.requests" {
			all[s.Values[len(s.Values)-1]] += v
		}
	}
	return all
}

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
	r.gate, r.reconfigure = g.Get("key"), g.ReconfigureGates
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
	stats := r.gate.Stats()
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
