package weirconfig_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirconfig"
)

func update(t *testing.T, set *weirconfig.Set, text string) error {
	t.Helper()
	file, err := weirconfig.Parse("w.yaml", []byte(text))
	require.NoError(t, err)
	return set.Update(file)
}

// rulesOf returns the names of the rules that the monitor evaluates.
func rulesOf(set *weirconfig.Set) (names []string) {
	for series := range set.Monitor().Observe {
		if series.Instrument.Name == "weir.alert.state" && !slices.Contains(names, series.Values[0]) {
			names = append(names, series.Values[0])
		}
	}
	return names
}

func succeed(context.Context) error { return nil }

// allowedOfTen returns how many of ten calls a gate allows.
func allowedOfTen(t *testing.T, g *weir.Gate) (allowed int) {
	t.Helper()
	for range 10 {
		if g.Run(t.Context(), succeed) == nil {
			allowed++
		}
	}
	return allowed
}

// limitStatus returns the status of a request to a limit.
func limitStatus(set *weirconfig.Set, name string) int {
	w := httptest.NewRecorder()
	set.Limit(name).Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code
}

func TestUpdateChangesObjectsThatAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, `
gates: {pay: {rate: 1/h, burst: 2}}
groups: {tenants: {gate: {rate: 1/h, burst: 3}}}
limits: {api: {policies: [{name: all, limit: 1, window: 1h, by: nothing}]}}
rules: [{name: pay fails, of: pay, value: failure_rate, span: 5m, when: above 5%}]
`, weirconfig.Config{})
		pay, a := set.Gate("pay"), set.Group("tenants").Get("a")
		require.Equal(t, 2, allowedOfTen(t, pay))
		require.Equal(t, 3, allowedOfTen(t, a))
		require.Equal(t, http.StatusNotFound, limitStatus(set, "api"))
		require.Equal(t, http.StatusTooManyRequests, limitStatus(set, "api"))

		require.NoError(t, update(t, set, `
gates: {pay: {breaker: {consecutive_failures: 1}}, new: {rate: 1/h, burst: 4}}
groups: {tenants: {gate: {rate: 3600/h, burst: 3}}}
limits: {api: {policies: [{name: all, limit: 1, window: 1h, by: nothing, shadow: true}]}}
rules: [{name: new is refused, of: new, value: refusals, span: 5m, when: above 3}]
`))
		require.Equal(t, 10, allowedOfTen(t, pay), "without a rate")
		require.Error(t, pay.Run(t.Context(), func(context.Context) error { return errors.New("down") }))
		require.True(t, pay.Tripped())
		require.Zero(t, allowedOfTen(t, a))
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, allowedOfTen(t, a), "by the new rate")
		require.Equal(t, http.StatusNotFound, limitStatus(set, "api"))
		require.Equal(t, 4, allowedOfTen(t, set.Gate("new")))
		set.Monitor().Evaluate(time.Now())
		require.Equal(t, []string{"new is refused"}, rulesOf(set))
		require.Len(t, set.Sources(), 6)
	})
}

func TestAFileThatNeedsARestartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, `
gates: {pay: {rate: 1/h, burst: 2}}
groups: {tenants: {gate: {max_concurrent: 5}}}
`, weirconfig.Config{})
		err := update(t, set, `
gates:
  pay: {rate: 1/h, burst: 9}
groups:
  tenants:
    gate:
      adaptive: true
      rate: 1/s
    max_keys: 7
monitor: {instance: a, state_file: /tmp/x}
`)
		require.ErrorIs(t, err, weirconfig.ErrRestart)
		require.EqualError(t, err, `w.yaml:9: groups.tenants: max_keys has changed: weirconfig: needs a restart
w.yaml:10: monitor: state_file has changed: weirconfig: needs a restart`)
		require.Equal(t, 2, allowedOfTen(t, set.Gate("pay")))
		require.NoError(t, update(t, set, `gates: {pay: {rate: 1/h, burst: 2}}`), "a group may be gone")
		for _, other := range []string{"max_keys: 4", "gate: {max_concurrent: 5, rate: 1/s}, max_keys: 3"} {
			require.ErrorIs(t, update(t, set, `groups: {tenants: {`+other+`}, new: {}}`), weirconfig.ErrRestart, "it is back as another")
			require.Panics(t, func() { set.Group("new") })
		}
		require.NoError(t, update(t, set, `groups: {tenants: {gate: {rate: 1/h, burst: 3, refuse_hopeless: true}}}`))
		require.Equal(t, 3, allowedOfTen(t, set.Group("tenants").Get("a")))
	})
}

func TestAnUpdateThatAFunctionMakesInvalidChangesNothing(t *testing.T) {
	bad := false
	set := newSet(t, `gates: {a: {}, b: {rate: 1/h, burst: 2}}`, weirconfig.Config{Gate: func(name string, c *weir.Config) {
		if bad && name == "b" {
			c.MaxConcurrent = -7
		}
	}})
	bad = true
	err := update(t, set, `gates: {a: {rate: 1/h, burst: 1}, b: {rate: 1/h, burst: 2}}`)
	require.ErrorContains(t, err, `the config of "b" in w.yaml is invalid after Config.Gate has changed it`)
	require.Equal(t, 10, allowedOfTen(t, set.Gate("a")))
}

func TestUpdateChangesMaxOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = `groups: {hosts: {gate: {breaker: {consecutive_failures: 1, cooldown: 1h}}`
		set := newSet(t, hosts+`}}`, weirconfig.Config{})
		require.NoError(t, update(t, set, hosts+`, max_open: 10%}}`))
		for _, key := range []string{"a", "b", "c"} {
			_ = set.Group("hosts").Get(key).Run(t.Context(), func(context.Context) error { return errors.New("down") })
		}
		require.True(t, set.Group("hosts").Get("a").Tripped())
		require.False(t, set.Group("hosts").Get("b").Tripped())
	})
}

func TestASinkThatStaysKeepsItsBreaker(t *testing.T) {
	const team = `{kind: slack, url: "https://hooks.example/a"}`
	set := newSet(t, `sinks: {team: `+team+`, other: {kind: slack, url: "https://hooks.example/b"}}`, weirconfig.Config{})
	before := set.Sources()
	require.NoError(t, update(t, set, `sinks: {team: `+team+`, other: {kind: slack, url: "https://hooks.example/c"}}`))
	after := set.Sources()
	require.Len(t, after, len(before))
	require.NotSame(t, before[0], after[0])
	require.Same(t, before[1], after[1])
}

// While callers call and wait, the config changes 50 times. In any span of time no more calls are
// allowed than the largest burst and the largest rate allow. Each call ends. No more calls are in
// flight than the largest bound.
func TestUpdatesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := []string{
			`gates: {pay: {rate: 100/s, burst: 10, max_concurrent: 5, max_wait: 1s}}`,
			`gates: {pay: {rate: 50/s, burst: 20, max_concurrent: 3, max_wait: 500ms}}`,
			`gates: {pay: {rate: 100/s, burst: 5, max_concurrent: 4, max_wait: 1s}, other: {}}`,
			`gates: {unrelated: {}}`,
		}
		set := newSet(t, texts[0], weirconfig.Config{})
		pay, began := set.Gate("pay"), time.Now()
		var calls, allowed, inFlight, most atomic.Int64
		var callers sync.WaitGroup
		var mu sync.Mutex
		var times []time.Time // at which calls were allowed
		stop := make(chan struct{})
		for i := range 20 {
			callers.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					calls.Add(1)
					_ = pay.Run(t.Context(), func(context.Context) error {
						allowed.Add(1)
						mu.Lock()
						times = append(times, time.Now())
						mu.Unlock()
						now := inFlight.Add(1)
						for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
						}
						time.Sleep(time.Duration(1+(i+n)%30) * time.Millisecond)
						inFlight.Add(-1)
						return nil
					})
					time.Sleep(time.Duration(1+(i*n)%7) * time.Millisecond)
				}
			})
		}
		for n := range 50 {
			time.Sleep(37 * time.Millisecond)
			require.NoError(t, update(t, set, texts[n%len(texts)]))
		}
		require.NoError(t, update(t, set, texts[0]))
		close(stop)
		callers.Wait()
		require.Greater(t, float64(allowed.Load()), 25*time.Since(began).Seconds())
		slices.SortFunc(times, time.Time.Compare)
		for i, from := range times {
			for j, to := range times[i:] {
				// a call that gets no slot gives its token back: five wait at most
				require.LessOrEqual(t, float64(j+1), 20+5+100*to.Sub(from).Seconds(), "from %v to %v", from, to)
			}
		}
		require.LessOrEqual(t, most.Load(), int64(5))
		require.Zero(t, inFlight.Load())
		total := pay.Totals()
		late := int64(0) // results of calls that were in flight when the gate was gone
		for series, v := range pay.Observe {
			if series.Instrument.Name == "weir.breaker.late_results" {
				late = int64(v)
			}
		}
		require.Equal(t, calls.Load(), total.Calls()+total.Refused+late)
		require.Equal(t, allowed.Load(), total.Calls()+late)
		require.Positive(t, late)
		var permits [5]weir.Permit
		for i := range permits { // no slot is lost
			var err error
			permits[i], err = pay.Allow(t.Context())
			require.NoError(t, err)
		}
		for i := range permits {
			permits[i].Done(t.Context(), nil)
		}
	})
}
