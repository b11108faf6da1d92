package conformance_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// grants hold the requests that a program has allowed, and a SlidingLog that has allowed the same
// ones. There is no SlidingLog while the program has allowed more than its limit, because a
// SlidingLog cannot allow more than its limit.
type grants struct {
	*run
	limit  int
	window time.Duration
	log    []grant
	weir   *limiter.Window
}

// grant is a number of permits at one time.
type grant struct {
	at time.Time
	n  int
}

// used returns the permits in the window at a time. A grant as old as the window no longer counts.
func (h *grants) used(at time.Time) (sum int) {
	for _, g := range h.log {
		if g.at.After(at.Add(-h.window)) {
			sum += g.n
		}
	}
	return sum
}

// compareWeir makes the same request to weir, and records a divergence if the answers differ, in
// either direction.
func (h *grants) compareWeir(at time.Time, n int, ok bool, overGrants, underGrants divergence) {
	used := h.used(at)
	granted := false
	if used <= h.limit {
		granted = h.sameState(at).TakeAt(at, n).OK
		if granted != (used+n <= h.limit) {
			h.mismatch("weir has ok %t for %d of %d, of which %d are used: %s", granted, n, h.limit, used, h.seq.Steps[h.at])
		}
	}
	switch {
	case ok && !granted:
		h.noteDivergence(overGrants)
	case granted && !ok:
		h.noteDivergence(underGrants)
	}
	if ok {
		h.log = append(h.log, grant{at, n})
	}
	if ok != granted {
		h.weir = nil
	}
}

// sameState returns a SlidingLog that has allowed the same requests as the reference. It makes a
// new one if the answers of weir and of the reference have differed.
func (h *grants) sameState(at time.Time) *limiter.Window {
	if h.weir != nil {
		return h.weir
	}
	h.weir = limiter.NewSlidingLog(limiter.WindowConfig{Limit: h.limit, Window: h.window})
	for _, g := range h.log {
		if g.at.After(at.Add(-h.window)) && !h.weir.TakeAt(g.at, g.n).OK {
			h.mismatch("weir refuses %d at %s, which the reference has allowed", g.n, g.at)
		}
	}
	return h.weir
}

type zsetConfig struct {
	Name   string `json:"name"`
	Period int64  `json:"period_s"`
	Max    int    `json:"max_count"`
	T0     int64  `json:"t0_ms"`
}

type zsetStep struct {
	At int64 `json:"t_ms"`

	OK      *bool    `json:"ok"`
	Set     *[]int64 `json:"zset"`
	Granted *int     `json:"true_granted_in_window"`
}

// zsetReplayer replays the sliding window on a sorted set that document 002 prints, and compares it
// with a SlidingLog.
var zsetReplayer = replaying("t_ms", func(r *run, c zsetConfig) func(zsetStep) {
	window := c.Period * 1000
	h := &grants{run: r, limit: c.Max, window: time.Duration(window) * time.Millisecond}
	set := map[int64]bool{}
	return func(s zsetStep) {
		set[s.At] = true
		maps.DeleteFunc(set, func(at int64, _ bool) bool { return at <= s.At-window })
		ok, at := len(set) <= c.Max, time.UnixMilli(s.At)
		h.compareWeir(at, 1, ok, sharedMember, refusedKept)
		checkSame(r, "ok", s.OK, ok)
		checkSame(r, "zset", s.Set, slices.Sorted(maps.Keys(set)))
		checkSame(r, "true_granted_in_window", s.Granted, h.used(at))
	}
})

type luaConfig struct {
	Name   string `json:"name"`
	Window int64  `json:"window_s"`
	Limit  int    `json:"limit"`
	T0     int64  `json:"t0_s"`
}

type luaStep struct {
	At int64 `json:"t_s"`

	OK      *bool    `json:"ok"`
	Reply   *int     `json:"raw_reply"`
	Set     *[]int64 `json:"zset"`
	Granted *int     `json:"true_granted_in_window"`
}

// luaReplayer replays the script for a sliding window that document 004 prints, and compares it
// with a SlidingLog.
var luaReplayer = replaying("t_s", func(r *run, c luaConfig) func(luaStep) {
	h := &grants{run: r, limit: c.Limit, window: time.Duration(c.Window) * time.Second}
	set := map[int64]bool{}
	return func(s luaStep) {
		maps.DeleteFunc(set, func(at int64, _ bool) bool { return at <= s.At-c.Window })
		ok, at := len(set) < c.Limit, time.Unix(s.At, 0)
		h.compareWeir(at, 1, ok, sharedMember, refusedKept)
		var reply *int
		if ok {
			set[s.At] = true
			reply = new(1)
		}
		checkSame(r, "ok", s.OK, ok)
		checkSameOrNull(r, "raw_reply", s.Reply, reply)
		checkSame(r, "zset", s.Set, slices.AppendSeq([]int64{}, slices.Values(slices.Sorted(maps.Keys(set)))))
		checkSame(r, "true_granted_in_window", s.Granted, h.used(at))
	}
})

type handmadeConfig struct {
	Name     string `json:"name"`
	Case     int    `json:"case"`
	Rate     int    `json:"rate"`
	Interval int64  `json:"interval_ms"`
	T0       int64  `json:"t0_ms"`
	Cursor   int64  `json:"initial_cursor_ms"`
}

type handmadeStep struct {
	At      int64 `json:"t_ms"`
	Permits int   `json:"permits"`

	OK      *bool    `json:"ok"`
	Current *int     `json:"current"`
	Cursor  *int64   `json:"cursor_ms"`
	Set     *[][]any `json:"zset"`
	Used    *int     `json:"true_used"`
}

// handmadeReplayer replays the two limiters that document 003 develops before Redisson's, and
// compares them with a SlidingLog.
var handmadeReplayer = replaying("t_ms permits", func(r *run, c handmadeConfig) func(handmadeStep) {
	m := &handmadeReplay{config: c, cursor: c.Cursor, set: map[int]int64{}}
	h := &grants{run: r, limit: c.Rate, window: time.Duration(c.Interval) * time.Millisecond}
	return func(s handmadeStep) {
		ok, at := m.take(s.At, s.Permits), time.UnixMilli(s.At)
		h.compareWeir(at, s.Permits, ok, restoredAtOnce, nothingRestored)
		checkSame(r, "ok", s.OK, ok)
		checkSame(r, "current", s.Current, m.current)
		checkSame(r, "cursor_ms", s.Cursor, m.cursor)
		checkSameOrNull(r, "zset", s.Set, m.members())
		checkSame(r, "true_used", s.Used, h.used(at))
	}
})

type handmadeReplay struct {
	config  handmadeConfig
	current int
	cursor  int64
	set     map[int]int64 // a permit count's latest time
}

func (m *handmadeReplay) take(now int64, permits int) bool {
	used := 0
	for n, at := range m.set {
		if at >= now-m.config.Interval {
			used += n
		}
	}
	switch {
	case now-m.cursor <= m.config.Interval:
		if m.current < permits {
			return false
		}
	case m.config.Case == 2 && m.config.Rate-used < permits:
		return false
	default:
		m.cursor, m.current = now, m.config.Rate
	}
	m.current -= permits
	m.set[permits] = now
	maps.DeleteFunc(m.set, func(_ int, at int64) bool { return at <= now-m.config.Interval })
	return true
}

// members returns the sorted set of case 2, in its order.
func (m *handmadeReplay) members() *[][]any {
	if m.config.Case == 1 {
		return nil
	}
	list := [][]any{}
	for n, at := range m.set {
		list = append(list, []any{strconv.Itoa(n), float64(at)})
	}
	slices.SortFunc(list, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[1].(float64), b[1].(float64)), cmp.Compare(a[0].(string), b[0].(string)))
	})
	return &list
}
