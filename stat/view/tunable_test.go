package view_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// tunables has a guard of each kind, with settings to set and values that are invalid.
func tunables() map[string]struct {
	guard   view.Viewer
	to      []view.Setting
	invalid []view.Setting
} {
	type test = struct {
		guard   view.Viewer
		to      []view.Setting
		invalid []view.Setting
	}
	rate := []view.Setting{{Name: "rate", Value: "7/s"}, {Name: "burst", Value: "3"}}
	bad := []view.Setting{{Name: "rate", Value: "7/s"}, {Name: "burst", Value: "-3"}}
	state := []view.Setting{{Name: "state", Value: "forced_open"}}
	slots := []view.Setting{{Name: "max_concurrent", Value: "4"}}
	gate := weir.Config{Rate: limiter.PerSecond(5), Burst: 2, MaxConcurrent: 9}
	policies := []weirhttp.Policy{{Name: "p", Rate: limiter.PerSecond(5), Burst: 2, By: weirhttp.ByIP}}
	window := []weirhttp.Policy{{Name: "p", Limit: 5, Window: time.Minute, By: weirhttp.ByIP}}
	return map[string]test{
		"breaker":       {breaker.New("b", breaker.Config{}), state, []view.Setting{{Name: "state", Value: "closed"}}},
		"breakers":      {breaker.NewGroup[int]("b", breaker.GroupConfig{}), state, []view.Setting{{Name: "state", Value: "ajar"}}},
		"gate":          {weir.New("g", gate), rate, bad},
		"gate's slots":  {weir.New("g", gate), slots, []view.Setting{{Name: "max_concurrent", Value: "0"}}},
		"gate's state":  {weir.New("g", gate), state, []view.Setting{{Name: "state", Value: "closed"}}},
		"gates":         {weir.NewGroup[int]("g", weir.GroupConfig{Gate: gate}), rate, bad},
		"gates' slots":  {weir.NewGroup[int]("g", weir.GroupConfig{Gate: gate}), slots, []view.Setting{{Name: "max_concurrent", Value: "0"}}},
		"gates' states": {weir.NewGroup[int]("g", weir.GroupConfig{Gate: gate}), state, []view.Setting{{Name: "state", Value: "ajar"}}},
		"bucket":        {limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "l", Rate: limiter.PerSecond(5)}), rate, bad},
		"keys":          {limiter.NewGroup(limiter.GroupConfig[int]{Name: "l", Rate: limiter.PerSecond(5)}), rate, bad},
		"bound":         {inflight.New(inflight.Config{Name: "i", Limit: 5}), slots, []view.Setting{{Name: "max_concurrent", Value: "1e9"}}},
		"throttle":      {throttle.New("t", throttle.Config{}), []view.Setting{{Name: "k", Value: "3"}}, []view.Setting{{Name: "k", Value: "NaN"}}},
		"policy":        {weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies}), rate, bad},
		"window policy": {weirhttp.NewLimit(weirhttp.LimitConfig{Policies: window}), []view.Setting{{Name: "limit", Value: "8"}}, []view.Setting{{Name: "limit", Value: "-8"}}},
	}
}

func valueOf(s []view.Setting, name string) string {
	for _, one := range s {
		if one.Name == name {
			return one.Value
		}
	}
	return "not there"
}

func TestTunablesKeepTheirPromises(t *testing.T) {
	for name, c := range tunables() {
		t.Run(name, func(t *testing.T) {
			x := of[view.Tunable](c.guard)
			before := x.Settings()
			unchanged := func(what string) {
				t.Helper()
				require.Equal(t, before, x.Settings(), what)
			}
			for what, s := range map[string][]view.Setting{
				"none": nil, "unknown": {{Name: "colour", Value: "red"}}, "twice": append(c.to[:1:1], c.to[0]), "invalid": c.invalid,
			} {
				_, err := x.Set("op", s...)
				require.Error(t, err, what)
				unchanged(what)
			}
			set, err := x.Set("op", c.to...)
			require.NoError(t, err)
			require.Len(t, set, len(c.to))
			for i, s := range c.to {
				require.Equal(t, s.Name, set[i].Name)
				require.Equal(t, s.Value, set[i].Value)
				require.Equal(t, s.Value, valueOf(x.Settings(), s.Name))
			}

			for what, r := range map[string][2][]view.Setting{
				"nothing": {}, "no earlier values": {set, nil}, "nothing was set": {nil, before}, "other settings": {before, before},
				"unknown": {{{Name: "colour"}}, {{Name: "colour"}}},
			} {
				require.False(t, x.Restore("op", r[0], r[1]), what)
				require.Equal(t, c.to[0].Value, valueOf(x.Settings(), c.to[0].Name), what)
			}
			again, err := x.Set("op", c.to...)
			require.NoError(t, err)
			require.NotEqual(t, set[0].Version, again[0].Version, "the same values")
			require.False(t, x.Restore("op", set, before))
			require.True(t, x.Restore("op", again, before))
			unchanged("restored")
		})
	}
}

// Restoring one of two settings that change together leaves the other.
func TestRestoreOfOneOfTwoSettings(t *testing.T) {
	for _, name := range []string{"gate", "gates", "bucket", "keys", "policy"} {
		c := tunables()[name]
		x := of[view.Tunable](c.guard)
		before := x.Settings()
		set, err := x.Set("op", c.to[0])
		require.NoError(t, err)
		require.Equal(t, valueOf(before, "burst"), valueOf(x.Settings(), "burst"), name)
		require.True(t, x.Restore("op", set, before), name)
		require.Equal(t, before, x.Settings(), name)
	}
}

// Two operators set a rate and a burst at the same time, and none is lost.
func TestSettingsOfTwoOperatorsAreBothKept(t *testing.T) {
	for _, name := range []string{"bucket", "keys", "policy", "gate"} {
		x := of[view.Tunable](tunables()[name].guard)
		for i := range 500 {
			var operators sync.WaitGroup
			for j, setting := range []string{"rate", "burst"} {
				operators.Go(func() {
					_, err := x.Set("op", view.Setting{Name: setting, Value: strconv.Itoa(i+j+1) + []string{"/s", ""}[j]})
					if err != nil {
						t.Error(err)
					}
				})
			}
			operators.Wait()
			s := x.Settings()
			require.Equal(t, strconv.Itoa(i+1)+"/s", valueOf(s, "rate"), name)
			require.Equal(t, strconv.Itoa(i+2), valueOf(s, "burst"), name)
		}
	}
}

// A group that was given a bound of 0 by Adaptive does not get it back without Adaptive.
func TestABoundOfZeroNeedsAdaptive(t *testing.T) {
	g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: weir.Config{Adaptive: true}})
	x := of[view.Tunable](g)
	before := x.Settings()
	require.NoError(t, g.Reconfigure(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 3}}))
	set, err := x.Set("op", view.Setting{Name: "max_concurrent", Value: "5"})
	require.NoError(t, err)
	require.False(t, x.Restore("op", set, before))
	require.NoError(t, g.Get(1).Run(t.Context(), func(context.Context) error { return nil }))
}

// broken is a guard of a user whose methods panic.
type broken struct{ where atomic.Value }

func (b *broken) panics(where string) {
	if b.where.Load() == where {
		panic("broken")
	}
}

func (*broken) Observe(func(*stat.Series, float64) bool) {}
func (b *broken) Views(yield func(view.View) bool)       { b.panics("Views"); yield(b) }
func (*broken) Kind() string                             { return "broken" }
func (*broken) Name() string                             { return "broken" }
func (b *broken) Settings() []view.Setting {
	b.panics("Settings")
	return []view.Setting{{Name: "state"}, {Name: "k", Value: "NaN"}}
}

func (b *broken) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	b.panics("Set")
	return s, nil
}

func (b *broken) Restore(string, []view.Setting, []view.Setting) bool {
	b.panics("Restore")
	return true
}

// A guard that panics does not take the others from an operator.
func TestABrokenGuardHidesNoOther(t *testing.T) {
	for _, where := range []string{"", "Views", "Settings", "Set"} {
		b := &broken{}
		anybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
		ops, err := admin.New(admin.Config{Authorize: anybody}, weir.New("payments", weir.Config{}), b)
		require.NoError(t, err)
		b.where.Store(where)
		require.Contains(t, get(ops, "/objects"), `"name": "payments"`, where)
	}
}

// The end of a timed action is called by a timer, whose panic would end the program.
func TestAGuardThatPanicsAtTheEndOfAnAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{}
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		anybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
		ops, err := admin.New(admin.Config{Authorize: anybody}, b)
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodPost, "/force?name=broken", strings.NewReader(`{"state":"open","for":"1m"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		ops.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		b.where.Store("Restore")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Contains(t, log.String(), "method=Restore panic=broken")
	})
}

func get(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Body.String()
}
