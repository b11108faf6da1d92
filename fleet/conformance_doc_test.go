package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
)

// docConfig and docStep describe the limiters printed in the documents.
type docConfig struct {
	Name     string `json:"name"`
	Period   int    `json:"period_s"`
	Window   int    `json:"window_s"`
	TTL      int    `json:"ttl_s"`
	Interval int    `json:"interval_ms"`
	MaxCount int    `json:"max_count"`
	Limit    int    `json:"limit"`
	Max      int    `json:"max"`
	Rate     int    `json:"rate"`
}

func (c docConfig) window() time.Duration {
	return time.Duration(c.Period+c.Window+c.TTL)*time.Second + time.Duration(c.Interval)*ms
}

func (c docConfig) limit() int { return c.MaxCount + c.Limit + c.Max + c.Rate }

type docStep struct {
	AtMS    int64 `json:"t_ms"`
	AtS     int64 `json:"t_s"`
	Permits *int  `json:"permits"`

	OK      bool  `json:"ok"`
	Limited bool  `json:"limited"`
	Dies    int64 `json:"dies_ms"`
}

func (s docStep) at() time.Time { return time.UnixMilli(s.AtMS + 1000*s.AtS) }

func (s docStep) n() int {
	if s.Permits == nil {
		return 1
	}
	return *s.Permits
}

// docGrant is a grant by a program of a document.
type docGrant struct {
	at time.Time
	n  int
}

// grantsAt returns the grants that count at a time.
func grantsAt(list []docGrant, at time.Time, window time.Duration) (rest []docGrant, used int) {
	for _, g := range list {
		if g.at.After(at.Add(-window)) {
			rest, used = append(rest, g), used+g.n
		}
	}
	return rest, used
}

// SlidingLog decides as the sorted sets of documents 002 and 004 and the limiters of document 003
// do, except where these are wrong. If they exceed their limit, SlidingLog refuses. If they refuse
// a request that fits, SlidingLog allows it. After a difference the test continues from the grants
// of the document.
func TestSlidingLogDecidesAsTheDocuments(t *testing.T) {
	l := connect(t)
	for name, want := range map[string][3]int{
		// steps; grants beyond the limit, and refusals of what fits, by the document: as for local
		// limiters
		"doc-zset002": {1420, 73, 283}, "doc-lua004": {1424, 28, 0}, "doc-handmade003": {1804, 29, 23},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [3]int
			for i, seq := range readTraces[docConfig, docStep](t, name) {
				b := newLimiter(l, fmt.Sprint(name, i), fleet.SlidingLog{Limit: seq.Config.limit(), Window: seq.Config.window()}, errorOnOutage)
				d := &docReplay{T: t, limiter: b, config: seq.Config}
				for _, s := range seq.Steps {
					over, under := d.step(s)
					got[0], got[1], got[2] = got[0]+1, got[1]+over, got[2]+under
				}
			}
			require.Equal(t, want, got)
		})
	}
}

type docReplay struct {
	*testing.T
	limiter *fleet.Limiter
	config  docConfig
	log     []docGrant // of the document
	// "" after a difference: the next step starts a new key with the grants in log
	key string
}

// step makes the request of a step, and reports whether the document's program allowed too much or
// too little.
func (d *docReplay) step(s docStep) (over, under int) {
	var used int
	d.log, used = grantsAt(d.log, s.at(), d.config.window())
	ok := false
	if used <= d.config.limit() {
		if d.key == "" {
			d.key = newKey()
			for _, g := range d.log {
				require.True(d, d.take(g.at, g.n), "what the document's program allowed")
			}
		}
		ok = d.take(s.at(), s.n())
		require.Equal(d, used+s.n() <= d.config.limit(), ok, "%d are used: %+v", used, s)
	}
	if s.OK {
		d.log = append(d.log, docGrant{s.at(), s.n()})
	}
	if ok == s.OK {
		return 0, 0
	}
	d.key = ""
	if s.OK {
		return 1, 0
	}
	return 0, 1
}

func (d *docReplay) take(at time.Time, n int) bool {
	r, err := d.limiter.TakeAt(d.Context(), at, d.key, n)
	require.NoError(d, err)
	return r.OK
}

// FixedWindow decides as INCR and EXPIRE of document 004 do. The windows of FixedWindow are
// aligned, and the windows of the document begin with a key's first call. The test therefore moves
// each window of the document to an aligned time. The windows of the document include their last
// millisecond.
func TestFixedWindowDecidesAsTheDocumentDoes(t *testing.T) {
	l, steps := connect(t), 0
	for i, seq := range readTraces[docConfig, docStep](t, "doc-fixed004") {
		span := seq.Config.window() + ms
		b := newLimiter(l, fmt.Sprint("fixed", i), fleet.FixedWindow{Limit: seq.Config.Max, Window: span}, errorOnOutage)
		dies := int64(0)
		grid := time.UnixMicro(testStart.UnixMicro() / span.Microseconds() * span.Microseconds())
		for _, s := range seq.Steps {
			if s.Dies != dies {
				dies, grid = s.Dies, grid.Add(span)
			}
			into := s.at().Sub(time.UnixMilli(dies).Add(-seq.Config.window()))
			r, err := b.TakeAt(t.Context(), grid.Add(into), "user", 1)
			require.NoError(t, err)
			require.Equal(t, !s.Limited, r.OK, "%s: %+v", seq.Config.Name, s)
			steps++
		}
	}
	require.Equal(t, 972, steps)
}
