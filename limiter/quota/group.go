package quota

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// limiters are functions of package limiter beyond its API.
var limiters = limiter.Inside(friend.Key{})

// Config configures a [Group].
type Config struct {
	// Limit is how many tokens each key can take in a period, from 1 to 2^31-1. Required.
	Limit int
	// Every is the period: Day, Week or Month. Required.
	Every Period
	// Zone is the time zone in which periods begin. Default UTC.
	Zone *time.Location
	// MaxKeys is the maximum number of keys that can have used something in one period. Further
	// keys are refused until the next period begins. With a file it can be at most 150,000. Default
	// 100,000.
	MaxKeys int
	// Name appears in errors and metrics. A group with a name keeps statistics, summed over all
	// keys, and is a [stat.Source]. No key becomes a label of a metric. Default none: no
	// statistics.
	Name string
	// Shadow allows all requests and counts those that would have been refused. Requires a Name.
	// Default false.
	Shadow bool
	// ShowKeys makes Busiest return the keys themselves, which may be personal data or secrets, and
	// keeps their texts. Otherwise it returns hashes of them. Requires a Name. Default false.
	ShowKeys bool
}

const defaultMaxKeys = 100_000

// Validate returns an error that names every invalid field, or nil.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("quota: "+format, args...)) }
	if c.Limit < 1 || c.Limit > math.MaxInt32 {
		fault("Limit is %d, must be between 1 and %d", c.Limit, math.MaxInt32)
	}
	switch c.Every {
	case Day, Week, Month:
	default:
		fault("Every is %q, must be %q, %q or %q", string(c.Every), Day, Week, Month)
	}
	if c.MaxKeys < 0 {
		fault("MaxKeys is %d, must be at least 1 (or 0 for the default)", c.MaxKeys)
	}
	if c.Shadow && c.Name == "" {
		fault("Shadow is set without a Name, must have both")
	}
	if c.ShowKeys && c.Name == "" {
		fault("ShowKeys is set without a Name, must have both")
	}
	return errors.Join(faults...)
}

// Group gives each key, such as a user, the same quota. Use the key "" for a single quota.
//
// A key uses about 100 bytes from its first token until the end of the period, however long it is,
// and about 400 with a file.
// A key in use is never forgotten for a new one.
//
// All methods are safe for concurrent use. Without a file, none of them blocks; see [Group.Open].
// The zero value does not work: use New.
type Group struct {
	name     string
	shadow   bool
	requests *limiter.Requests // nil without a name
	noRoom   atomic.Int64      // requests of keys for which there was no room
	single   atomic.Bool       // a request had the key ""
	file     file

	mu     sync.Mutex // guards what follows; held after file.mu if both are
	epoch  time.Time  // a moment of the clock in use
	latest time.Duration
	counts counts
	warned time.Time // the start of the last period in which it was logged that there is no room
}

// New returns a group whose keys have used nothing. It panics with the error of c.Validate if c is
// invalid.
func New(c Config) *Group {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := &Group{name: c.Name, shadow: c.Shadow, epoch: time.Now()}
	g.counts = counts{
		calendar: calendar{every: c.Every, zone: cmp.Or(c.Zone, time.UTC)},
		limit:    int64(c.Limit), maxKeys: cmp.Or(c.MaxKeys, defaultMaxKeys), keys: map[keyID]*usage{},
	}
	if c.Name != "" {
		g.requests = limiter.NewRequests(c.Name, c.ShowKeys)
	}
	return g
}

// Get returns the limiter of the key. It remembers nothing.
func (g *Group) Get(key string) Keyed { return Keyed{group: g, key: key} }

// Forget gives the key its whole quota again. It reports whether the key had used any of it.
func (g *Group) Forget(key string) bool {
	id := idOf(key)
	g.mu.Lock()
	known := g.counts.keys[id] != nil
	if known {
		g.counts.forget(id)
	}
	g.mu.Unlock()
	g.write(writing{soon: known})
	return known
}

// Name returns the name, or "" if there is none.
func (g *Group) Name() string { return g.name }

// Stats returns the statistics, which are zero if the group has no name.
func (g *Group) Stats() limiter.Stats {
	if g.requests == nil {
		return limiter.Stats{}
	}
	return g.requests.Stats()
}

// Busiest returns up to n of the keys that were refused most often, with the most refused key
// first. It returns none if the group has no name. See [limiter.BusyKey].
func (g *Group) Busiest(n int) []limiter.BusyKey {
	if g.requests == nil {
		return nil
	}
	return g.requests.Busiest(n)
}

// Observe yields the metrics of the group (see [stat.Source]), or nothing if it has no name. The
// tokens that are available are those of the key "", if a request had that key.
func (g *Group) Observe(yield func(*stat.Series, float64) bool) {
	if g.requests == nil || !limiters.Observe(g.requests, limiters.ObservedTokens(g.shadow), yield) {
		return
	}
	s, now := limiters.Series(g.requests), time.Now()
	g.mu.Lock()
	keys, available, period := len(g.counts.keys), g.counts.remaining(idOf("")), g.counts.period
	g.mu.Unlock()
	if !now.Before(period.end) { // no request was made since
		keys, available, period = 0, g.counts.limit, g.counts.calendar.at(now)
	}
	_ = yield(s.Limit, float64(g.counts.limit)) &&
		yield(s.Period, period.end.Sub(period.start).Seconds()) &&
		(!g.single.Load() || yield(s.Available, float64(available))) &&
		yield(s.Keys, float64(keys)) &&
		yield(s.NoRoom(), float64(g.noRoom.Load())) &&
		g.file.observe(g.name, s.Near.Created, yield)
}

// advanceTo begins the period of t, which the caller has read from the clock or has chosen, or of
// the present time if t is zero. It returns the time. The caller holds the lock.
func (g *Group) advanceTo(t time.Time) time.Time {
	now := time.Now()
	if t.IsZero() {
		t = now
	}
	g.restartIfNew(now)
	g.counts.advance(t, t.Sub(now).Abs() <= time.Minute)
	return t
}

// restartIfNew forgets all keys if the clock is another one than before: that of a testing/synctest
// bubble, which begins in the year 2000 and has no monotonic reading. All readings are made with
// the lock held, so the difference to the epoch shows it: the difference of two monotonic readings
// never goes back, whatever happens to the wall clock.
func (g *Group) restartIfNew(now time.Time) {
	at := now.Sub(g.epoch)
	if at < g.latest {
		g.counts.forgetAll()
		g.counts.period = span{}
		g.epoch, at = now, 0
	}
	g.latest = at
}

// take takes n tokens of a key at t, or now if t is zero. It counts nothing in the statistics, and
// does not know shadow mode.
func (g *Group) take(key string, t time.Time, n int) (limiter.Result, span) {
	id := idOf(key)
	g.mu.Lock()
	t = g.advanceTo(t)
	r, u := g.counts.take(id, t, n)
	period, w := g.counts.period, g.counts.writingOf(id, u)
	g.mu.Unlock()
	if r.NoRoom {
		g.noRoom.Add(1)
	}
	g.write(w)
	return r, period
}

// takeAndWarn is take, and logs that there is no room for the key, once per period.
func (g *Group) takeAndWarn(key string, t time.Time, n int) limiter.Result {
	r, period := g.take(key, t, n)
	if !r.NoRoom {
		return r
	}
	g.mu.Lock()
	warned := g.warned.Equal(period.start)
	g.warned = period.start
	g.mu.Unlock()
	if !warned { // without the lock, because the handler is the user's
		slog.Warn("quota: no room for new keys until the next period: raise MaxKeys",
			"quota", g.name, "MaxKeys", g.counts.maxKeys, "until", period.end)
	}
	return r
}

// peek returns whether take would take the tokens after ahead other tokens were taken, and what is
// left now. It takes nothing.
func (g *Group) peek(key string, t time.Time, ahead int64, n int) (limiter.Result, span) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t = g.advanceTo(t)
	return g.counts.peek(idOf(key), t, ahead, n), g.counts.period
}

// record counts a request that was answered with r, and returns the answer for the caller, which in
// shadow mode is always OK.
func (g *Group) record(key string, r limiter.Result, n int) limiter.Result {
	if g.requests == nil || n == 0 {
		return r
	}
	if key == "" {
		g.single.Store(true)
	}
	if !r.OK {
		g.requests.RecordKey(key)
		if g.shadow {
			limiters.CountTokens(g.requests, instrument.Shadowed, n)
			r.OK = true
			return r
		}
	}
	g.requests.Record(r, n)
	return r
}

// Keyed is the quota of one key of a [Group], from [Group.Get]. It is a small value without state:
// all values of one key are the same limiter. The zero value is not usable.
type Keyed struct {
	group *Group
	key   string
}

// Take takes n tokens of the quota, or none if there are fewer. A refusal says when the next period
// begins. In shadow mode the result is always OK, with the numbers of the refusal if no tokens were
// taken.
func (k Keyed) Take(n int) limiter.Result { return k.TakeAt(time.Time{}, n) }

// TakeAt is Take at the time t. A time before the present period takes the tokens of the present
// period.
func (k Keyed) TakeAt(t time.Time, n int) limiter.Result {
	return k.group.record(k.key, k.group.takeAndWarn(k.key, t, n), n)
}

// Refund gives back n tokens that were taken at the time taken. It gives back nothing if the period
// of that time is over.
func (k Keyed) Refund(taken time.Time, n int) {
	if n < 1 {
		return
	}
	g, id := k.group, idOf(k.key)
	g.mu.Lock()
	tooMany := g.counts.refund(id, taken, n)
	g.mu.Unlock()
	g.write(writing{soon: tooMany >= g.counts.lease()})
}

// Charge takes n tokens, whether the quota has them or not, and whether there is room for the key
// or not. Tokens beyond the quota are a debt of the present period: the next period begins with a
// whole quota. An n below 1 does nothing.
func (k Keyed) Charge(n int) {
	if n > 0 {
		k.group.charge(k.key, n, true)
	}
}

// charge is Charge, but charges a new key only if there is room or it is forced to. It reports
// whether it has charged the key.
func (g *Group) charge(key string, n int, force bool) bool {
	id := idOf(key)
	g.mu.Lock()
	g.advanceTo(time.Time{})
	if !force && g.counts.keys[id] == nil && len(g.counts.keys) >= g.counts.maxKeys {
		g.mu.Unlock()
		return false
	}
	u := g.counts.add(id, int64(n))
	w := g.counts.writingOf(id, u)
	g.mu.Unlock()
	g.write(w)
	return true
}
