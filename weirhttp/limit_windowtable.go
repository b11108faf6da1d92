package weirhttp

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// windowTable is the table of a Policy with a Window.
type windowTable struct {
	logs     *windowLogs
	decided  *decided
	named    *limiter.Joint // counts what the logs decide
	refusals *busy.Sketch[quotaKey]
	series   *windowSeries
	policy   Policy
}

func newWindowTable(p Policy, name string, maxKeys int) *windowTable {
	return namedWindowTable(p, name, newWindowLogs(p, maxKeys), busy.New[quotaKey](p.ShowKeys))
}

func namedWindowTable(p Policy, name string, logs *windowLogs, refusals *busy.Sketch[quotaKey]) *windowTable {
	d := &decided{}
	return &windowTable{
		logs: logs, refusals: refusals, policy: p, series: newWindowSeries(name),
		decided: d, named: limiter.NewJoint(limiter.JointConfig{Name: name, Shadow: p.Shadow}, d),
	}
}

func (w *windowTable) take(_ time.Time, key quotaKey, n int) reply {
	if n == 0 { // there is nothing to count
		return w.peek(time.Time{}, key, 0)
	}
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	reply := w.logs.take(w.logs.now(), key, n)
	if !reply.OK {
		w.refusals.Add(key)
	}
	noRoom := reply.NoRoom
	if noRoom {
		w.logs.noRoom++
	}
	w.decided.result = reply.Result
	reply.Result = w.named.Take(n) // counts the request; OK in shadow mode
	reply.NoRoom = noRoom
	return reply
}

func (w *windowTable) peek(_ time.Time, key quotaKey, n int) reply {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.peek(w.logs.now(), key, n)
}

func (w *windowTable) refund(taken taken, key quotaKey, n int) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.refund(taken.offset, key, int64(n))
}

// drain takes n tokens, or all if there are fewer. It returns false if there is no room for the
// key.
func (w *windowTable) drain(key quotaKey, n int) (room bool) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	at := w.logs.now()
	r := w.logs.take(at, key, n)
	if !r.OK && r.room && r.Remaining > 0 {
		r = w.logs.take(at, key, min(n, r.Remaining))
	}
	return r.room
}

// Forget implements keyTable.
func (w *windowTable) Forget(key quotaKey) bool {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	return w.logs.forget(key)
}

func (w *windowTable) forgetAll() {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.forgetAll()
}

func (w *windowTable) successor(p Policy, name string) (keyTable, error) {
	w.logs.mu.Lock()
	w.logs.limit = p.windowLimit()
	w.logs.mu.Unlock()
	w.refusals.Show(p.ShowKeys)
	if p.Shadow != w.policy.Shadow {
		return namedWindowTable(p, name, w.logs, w.refusals), nil
	}
	next := *w
	next.policy = p
	return &next, nil
}

// Observe yields the statistics, with the same series as those of a limiter.Group.
func (w *windowTable) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range w.named.Observe {
		if !yield(s, v) {
			return
		}
	}
	w.logs.mu.Lock()
	keys, evictions, noRoom, c := len(w.logs.byKey), w.logs.evictions, w.logs.noRoom, w.logs.limit
	w.logs.mu.Unlock()
	_ = yield(w.series.keys, float64(keys)) &&
		yield(w.series.evictions, float64(evictions)) &&
		yield(w.series.noRoom, float64(noRoom)) &&
		yield(w.series.limit, float64(c.limit)) &&
		yield(w.series.period, time.Duration(c.window).Seconds())
}

type windowSeries struct{ keys, evictions, noRoom, limit, period *stat.Series }

func newWindowSeries(name string) *windowSeries {
	return &windowSeries{
		keys: instrument.LimiterKeys.Series(name), evictions: instrument.LimiterEvictions.Series(name), noRoom: instrument.LimiterNoRoom.Series(name),
		limit: instrument.LimiterLimit.Series(name), period: instrument.LimiterPeriod.Series(name),
	}
}

// decided is a limiter.Limiter that returns a result that is known already. Through it a
// limiter.Joint counts the results of all keys together. The lock of the logs guards result.
type decided struct{ result limiter.Result }

func (d *decided) Take(n int) limiter.Result {
	if n == 0 { // a Joint that is observed takes 0
		return limiter.Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}
	}
	return d.result
}

func (d *decided) TakeAt(_ time.Time, n int) limiter.Result { return d.Take(n) }
