package weir

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/limiter"
)

// GroupConfig configures a [Group]. The zero value is valid.
type GroupConfig struct {
	// Gate configures the gate of each key. Default the defaults of Config.
	Gate Config
	// MaxKeys is how many keys the group can have. A key takes 1.6 to 2.6 kB, and 900 bytes more
	// with Gate.Adaptive and 0.5 to 5 kB more with Gate.RefuseHopeless: see breaker.GroupConfig.
	// The group also keeps up to MaxKeys holds, and token buckets of about 50 bytes each: up to a
	// million, or MaxKeys if that is more, also for keys without room. The metrics
	// weir.breaker.group.unguarded and weir.limiter.no_room count what is done without room.
	// Default 100,000.
	MaxKeys int
	// MaxSeries is how many keys have their own series in metrics, up to half of MaxKeys: see
	// breaker.GroupConfig. breaker.Off gives no key its own series. Default 100, or half of MaxKeys
	// if that is less.
	MaxSeries int
	// MaxOpen is the largest share of the keys whose breakers may be open at once, above 0 and at
	// most 1: see breaker.GroupConfig. Default 0: no bound.
	MaxOpen float64
	// ShowKeys makes Busiest return the keys themselves, which may be personal data or secrets, and
	// keeps their texts. Otherwise it returns hashes of them. Default false.
	ShowKeys bool
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c GroupConfig) Validate() error {
	gate := c.Gate.Validate()
	if gate != nil {
		gate = fmt.Errorf("weir: Gate: %w", gate)
	}
	c.Gate.Breaker = breaker.Config{} // the error gate has the faults of Breaker already
	return errors.Join(gate, c.breakers().Validate())
}

func (c GroupConfig) breakers() breaker.GroupConfig {
	c.MaxKeys = cmp.Or(c.MaxKeys, defaultKeys)
	return breaker.GroupConfig{Breaker: c.Gate.Breaker, MaxKeys: c.MaxKeys, MaxSeries: c.MaxSeries, MaxOpen: c.MaxOpen}
}

// Group has one gate per key, such as a host, a tenant or a shard, in bounded memory:
//
//	var hosts = weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(100)}})
//
//	err := hosts.Get(req.URL.Host).Run(ctx, send)
//
// A key takes no memory until Get is first called for it. If the group has MaxKeys keys, a new key
// replaces an idle one. A key is idle if a new breaker would decide as its breaker does: see
// [breaker.Group]. Its token bucket is evicted separately, when the bucket is full again: see
// [limiter.Group]. A Group starts no goroutine and no timer.
//
// If a key was evicted or forgotten and is used again, it learns its adaptive bound and its
// estimate for RefuseHopeless again. No hopeless call is refused for a key that has no room in the
// group.
//
// If no key is idle, the calls of a new key are not guarded by a breaker, and all such keys share
// one bound on calls in flight. An error says so: it names MaxKeys. The key gets its own gate as
// soon as there is room, and its own bound on calls in flight when those of its calls that began
// without room have ended. It has its own token bucket also without room, unless a million other
// buckets are in use: then all keys without a bucket share one.
//
// Call Get for each call. A gate that is kept for longer may no longer be in the group, because its
// key was evicted or forgotten. It still works, but with a breaker of its own, which the group
// neither observes nor reconfigures. A key whose calls are in flight or wait is not evicted.
//
// All methods are safe for concurrent use. The zero value does not work: use NewGroup.
type Group[K comparable] struct {
	name       string
	epoch      time.Time
	breakers   *breaker.Group[K]
	maxBuckets int
	// when it was last logged that a key has no bucket
	saidNoBucket atomic.Pointer[time.Time]
	parts        atomic.Pointer[groupParts[K]]
	admissions   admissions
	holds        holdTable[K]
	waits        waits
	sharing      sharing[K]

	// Guarded by mu. These fields are kept while there is no Rate or no bound, like those of
	// ownParts.
	mu          sync.Mutex
	buckets     *limiter.Group[K] // nil until there is a Rate
	limits      *keyLimits[K]     // of SetLimits, instead of buckets; nil before it
	withoutRoom *inflight.Limiter // of all keys without room; nil until there is a bound
	retries     *RetryBudget      // likewise; nil until there is a RetryShare
	slotsSet    uint64            // the number of MaxConcurrent: see view.Setting.Version
}

// groupParts are what all gates of a group share. Reconfigure replaces them as a whole.
type groupParts[K comparable] struct {
	config      Config
	breakers    breaker.GroupConfig
	buckets     *limiter.Group[K] // nil if there is no Rate, or after SetLimits
	limits      *keyLimits[K]     // of SetLimits, or nil
	withoutRoom *inflight.Limiter // nil if there is no bound on calls in flight
	retries     *RetryBudget      // of all keys without room; nil without a RetryShare
}

// keyLimits are the limits of SetLimits. One of them may be nil.
type keyLimits[K comparable] struct{ calls, costs *limiter.Group[K] }

// of returns the limiter of a key.
func (l *keyLimits[K]) of(key K) limiter.Limiter {
	var calls, costs limiter.Limiter
	if l.calls != nil {
		calls = l.calls.Get(key)
	}
	if l.costs != nil {
		costs = l.costs.Get(key)
	}
	return limits(calls, costs)
}

// holdAll holds all keys for d.
func (l *keyLimits[K]) holdAll(d time.Duration) {
	for _, group := range []*limiter.Group[K]{l.calls, l.costs} {
		if group != nil {
			group.Inside(friend.Key{}).HoldAll(d)
		}
	}
}

// NewGroup returns a group without keys. The name appears in errors and metrics. NewGroup panics
// with the error of c.Validate if c is invalid.
func NewGroup[K comparable](name string, c GroupConfig) *Group[K] {
	return newGroup[K](name, c, max(c.MaxKeys, defaultBuckets))
}

func newGroup[K comparable](name string, c GroupConfig, maxBuckets int) *Group[K] {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	g := &Group[K]{
		name: name, epoch: time.Now(), maxBuckets: maxBuckets,
		breakers: breaker.NewGroup[K](name, c.breakers()),
		holds:    holdTable[K]{max: cmp.Or(c.MaxKeys, defaultKeys), refusals: busy.New[K](c.ShowKeys)},
	}
	g.holds.epoch = g.epoch
	inLimiter.InitRequests(&g.admissions.calls, name, g.epoch)
	g.breakers.Inside(friend.Key{}).SetGates(gates[K]{g})
	if err := g.setConfig(c); err != nil {
		panic(err)
	}
	return g
}

// bucketConfig returns the config of the token buckets of all keys.
func (g *Group[K]) bucketConfig(c Config) limiter.GroupConfig[K] {
	return limiter.GroupConfig[K]{Rate: c.Rate, Burst: c.Burst, MaxKeys: g.maxBuckets, ShareNew: true}
}

const (
	defaultKeys    = 100_000
	defaultBuckets = 1_000_000
)

// Get returns the gate of the key, and adds the key if it is new. For a known key it allocates
// nothing. For a new key it may block for as long as [breaker.Group.Get] does.
func (g *Group[K]) Get(key K) *Gate {
	b := g.breakers.Get(key)
	if gate := inBreaker.Gate(b); gate != nil { // as in gateOf
		return &gate.(*keyedGate[K]).Gate
	}
	return g.gateOf(key, b)
}

// gateOf returns the gate of a key with the given breaker. A key with room got it with its breaker.
// For a key without room, gateOf makes a new gate for each call.
func (g *Group[K]) gateOf(key K, b *breaker.Breaker) *Gate {
	if gate := inBreaker.Gate(b); gate != nil {
		return &gate.(*keyedGate[K]).Gate
	}
	return &g.newGate(keytext.Bounded(key), b, false).Gate
}

// gates makes the gates of a group.
type gates[K comparable] struct{ group *Group[K] }

// NewGate returns the gate of a new key with room.
func (m gates[K]) NewGate(key K, b *breaker.Breaker) friend.Gate {
	return m.group.newGate(key, b, true)
}

// keyedGate is a gate of a group and the parts that only its key has.
type keyedGate[K comparable] struct {
	Gate
	group    *Group[K]
	parts    *groupParts[K] // of the first setup
	bucket   limiter.Keyed[K]
	limit    limiter.Limiter // of the key in limits
	limits   *keyLimits[K]   // nil until SetLimits
	hold     keyHold[K]
	inFlight atomic.Pointer[inflight.Limiter] // nil until there is a bound
	room     bool                             // it is the gate of one key
	retries  *RetryBudget                     // nil until there is a RetryShare
	sharing  atomic.Bool                      // the key has room, and still shares a bound
}

func (g *Group[K]) newGate(key K, b *breaker.Breaker, room bool) *keyedGate[K] {
	k := &keyedGate[K]{group: g, room: room, parts: g.parts.Load(), hold: keyHold[K]{table: &g.holds, key: key}}
	k.name, k.epoch, k.breaker, k.keyed = g.name, g.epoch, b, k
	k.Gate.hold, k.waits = &k.hold, &g.waits
	k.counts.Store(&g.admissions)
	k.lastHold.Store(&g.holds.last)
	if k.hasRoom() {
		// a call of the key that now gets a slot without room looks afterwards for its gate, and
		// waits for this one
		k.sharing.Store(k.hasShared())
	}
	k.setup.Store(&k.first)
	k.apply(k.parts, &k.first)
	return k
}

// hasRoom reports whether the gate is that of one key.
func (k *keyedGate[K]) hasRoom() bool { return k.room }

// IsBusy reports whether calls of the key are in flight that a new gate would not count, even if
// there is no bound at present.
func (k *keyedGate[K]) IsBusy() bool {
	l := k.inFlight.Load()
	return l != nil && l.InFlight() > 0 || k.hasShared()
}

func (k *keyedGate[K]) maxKeys() int { return k.group.holds.max }

// noBucket returns how many keys have buckets. It logs, at most once per minute, that the key has
// none. No lock is held.
func (k *keyedGate[K]) noBucket() (maxBuckets int) {
	g := k.group
	last := g.saidNoBucket.Load()
	if now := time.Now(); (last == nil || now.Sub(*last).Abs() >= time.Minute) && g.saidNoBucket.CompareAndSwap(last, &now) {
		log.Printf("weir: group %q has no token bucket for new keys, which share one: raise MaxKeys, there are %d buckets", g.name, g.maxBuckets) //nolint:forbidigo // log/slog would be linked into every program with a gate
	}
	return g.maxBuckets
}

func (k *keyedGate[K]) hasLeft() bool { return inBreaker.HasLeft(k.breaker) }

// ofKey returns the gate that the key has now, or gets if k has left the group. Calls count in its
// bound on calls in flight, so that the bound is one for all calls of the key.
func (k *keyedGate[K]) ofKey() *Gate {
	if k.hasLeft() {
		return k.group.Get(k.hold.key)
	}
	return k.current()
}

// current returns the gate that decides about a call of k. This is another gate than k if k was
// made without room, and the key has room now or Reconfigure was called since.
func (k *keyedGate[K]) current() *Gate {
	if k.hasRoom() {
		return &k.Gate
	}
	if own := k.group.breakers.Inside(friend.Key{}).Find(k.hold.key); own != nil {
		return k.group.gateOf(k.hold.key, own)
	}
	if k.parts != k.group.parts.Load() {
		return &k.group.newGate(k.hold.key, k.breaker, false).Gate
	}
	return &k.Gate
}

// Len returns the number of keys, at most GroupConfig.MaxKeys.
func (g *Group[K]) Len() int { return g.breakers.Len() }

// All yields the keys and their gates, in no particular order. Keys that are added during the
// iteration may be missing. No lock is held while the loop body runs.
func (g *Group[K]) All() iter.Seq2[K, *Gate] {
	return func(yield func(K, *Gate) bool) {
		for key, b := range g.breakers.All() {
			if !yield(key, g.gateOf(key, b)) {
				return
			}
		}
	}
}

// Forget removes the key, whatever the state of its gate, and reports whether the group had it. The
// next call of the key starts with a new breaker, a full token bucket and no hold. Use Forget for
// keys that no longer exist, such as a host that was shut down. Calls that wait continue to wait
// with the new breaker and the new bucket. Calls in flight end with the old breaker, and do not
// count in the new bound on calls in flight.
func (g *Group[K]) Forget(key K) bool {
	key = keytext.Bounded(key)
	known := g.breakers.Forget(key)
	g.holds.forget(key)
	// before a call that waits is given a token of the filled bucket
	g.waits.forget(func(k member) bool { return k.(*keyedGate[K]).hold.key == key })
	g.mu.Lock()
	buckets := g.buckets // also those that are kept while there is no Rate
	g.mu.Unlock()
	if buckets != nil && buckets.Forget(key) {
		known = true
	}
	return known
}

// Stats returns how many calls of all keys their limits have allowed and refused: see
// [Gate.Stats].
func (g *Group[K]) Stats() limiter.Stats { return g.admissions.stats() }

// Busiest returns up to n of the keys that limits have refused most often, with the most refused
// key first. Refusals by a hold count too, as in Stats. Refusals by breakers do not count. The
// counting costs nothing for allowed calls. See [limiter.BusyKey] for the bounds of the counts.
func (g *Group[K]) Busiest(n int) []limiter.BusyKey {
	var keys []limiter.BusyKey
	for _, k := range g.holds.refusals.Busiest(g.name, n) {
		keys = append(keys, limiter.BusyKey(k))
	}
	return keys
}

// Reconfigure replaces the config of all keys, including those added later, while calls are made.
// All fields can change, except MaxKeys and MaxSeries. Calls that wait and calls in flight continue
// as [Gate.Reconfigure] says. In any span of time, a key is allowed at most the calls that the
// largest limits in effect during that span allow. Breakers keep their states and counts: see
// [breaker.Breaker.Reconfigure]. Token buckets keep their tokens, but not more than the new Burst:
// see [limiter.TokenBucket.SetRate].
//
// If c is invalid, or differs in MaxKeys or MaxSeries, Reconfigure returns an error and changes
// nothing.
func (g *Group[K]) Reconfigure(c GroupConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !g.breakers.Inside(friend.Key{}).CanBecome(c.breakers()) {
		return errors.New("weir: Reconfigure can change Gate, MaxOpen and ShowKeys; MaxKeys and MaxSeries must be as before")
	}
	g.mu.Lock()
	err := g.setConfig(c)
	p := g.parts.Load()
	g.mu.Unlock()
	if err != nil {
		return err
	}
	// The breakers call OnChange, so the lock is not held. If another Reconfigure has come between,
	// the breakers get the config that the other parts have.
	for {
		if err = g.breakers.Reconfigure(p.breakers); err != nil {
			return err
		}
		latest := g.parts.Load()
		if latest == p {
			return nil
		}
		p = latest
	}
}

// SetLimits replaces Gate.Rate by limits of your own. A call of a key takes one token of the key in
// calls, and what it costs of the key in costs: see [WithCost]. Each may be nil, and with two nils
// Gate.Rate counts again. Use it for costs, and for plans that differ by key, which are the tiers
// of a [limiter.Group]: a key that changes its plan keeps its breaker and its tokens, as
// limiter.GroupConfig.TierOf says.
//
// Calls of a key without room in one of them are refused, unless its ShareNew is set. Give them
// names if you need their metrics; the group exports none of its limits after SetLimits. Forget
// does not change what a key has taken of them, and Reconfigure keeps them. Calls that wait begin
// to wait again, as after Reconfigure. For a MaxWait, set Gate.Rate too, for example to
// limiter.Unlimited().
func (g *Group[K]) SetLimits(calls, costs *limiter.Group[K]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = nil
	if calls != nil || costs != nil {
		g.limits = &keyLimits[K]{calls, costs}
	}
	p := *g.parts.Load()
	_ = g.setBuckets(&p) // the config is valid
	g.setParts(&p)
}

// setMaxConcurrent replaces MaxConcurrent alone by a valid number, if there is a bound. The lock is
// held.
func (g *Group[K]) setMaxConcurrent(n int, number uint64) {
	p := *g.parts.Load()
	p.config.MaxConcurrent = n
	g.setParts(&p)
	g.slotsSet = number
}

// setConfig gives all gates the parts for a valid config. The lock is held.
func (g *Group[K]) setConfig(c GroupConfig) error {
	p := &groupParts[K]{config: c.Gate, breakers: c.breakers()}
	if err := g.setBuckets(p); err != nil {
		return err
	}
	g.holds.refusals.Show(c.ShowKeys)
	g.setParts(p)
	g.slotsSet = settings.NextVersion()
	return nil
}

// setParts gives all gates the buckets of p, and the other parts as the config of p says. It stores
// p before it visits the gates. So a gate that is made meanwhile either uses p from the beginning
// or is visited. The lock is held.
func (g *Group[K]) setParts(p *groupParts[K]) {
	g.setWithoutRoom(p)
	if p.retries = nil; p.config.RetryShare != 0 {
		g.retries = retriesWithLimits(g.retries, p.config, &g.admissions)
		p.retries = g.retries
	}
	g.parts.Store(p)
	for _, gate := range g.All() {
		k := gate.keyed.(*keyedGate[K])
		next := new(setup)
		k.apply(p, next)
		k.setup.Store(next)
	}
	g.waits.adopt()
}

func (g *Group[K]) setBuckets(p *groupParts[K]) (err error) {
	p.buckets, p.limits = nil, g.limits
	if p.limits != nil || p.config.Rate == (limiter.Rate{}) {
		return nil
	}
	if c := g.bucketConfig(p.config); g.buckets == nil {
		g.buckets = limiter.NewGroup(c)
	} else {
		err = g.buckets.Reconfigure(c)
	}
	p.buckets = g.buckets
	return err
}

func (g *Group[K]) setWithoutRoom(p *groupParts[K]) {
	if p.config.bounded() {
		g.withoutRoom = boundWithLimits(g.withoutRoom, g.name, p.config)
		p.withoutRoom = g.withoutRoom
	}
}

// boundWithLimits returns a bound with the limits of c: l itself, whose slots stay in use, or a new
// bound if l is nil.
func boundWithLimits(l *inflight.Limiter, name string, c Config) *inflight.Limiter {
	if l == nil {
		return inBound.New(name, c.MaxConcurrent, c.Adaptive)
	}
	inBound.Reconfigure(l, c.MaxConcurrent, c.Adaptive)
	return l
}

// apply fills in a setup by the parts of the group. The lock of the group is held, unless the gate
// is new.
func (k *keyedGate[K]) apply(p *groupParts[K], s *setup) {
	s.Gate, s.maxWait = &k.Gate, p.config.MaxWait
	if p.buckets != nil {
		if k.bucket == (limiter.Keyed[K]{}) {
			k.bucket = p.buckets.Get(k.hold.key)
		}
		s.limiter, s.timed, s.ownBuckets = &k.bucket, &k.bucket, true
	}
	if p.limits != nil {
		if k.limits != p.limits {
			k.limits, k.limit = p.limits, p.limits.of(k.hold.key)
		}
		s.limiter, s.costs, s.limitsSet = k.limit, p.limits.costs != nil, p.limits
		s.timed, _ = s.limiter.(limiter.TimedLimiter)
	}
	s.onlyBreaker = s.limiter == nil
	switch {
	case p.withoutRoom == nil:
	case !k.hasRoom() || k.sharing.Load():
		s.inFlight, s.shared = p.withoutRoom, true
	default:
		own := boundWithLimits(k.inFlight.Load(), k.name, p.config)
		k.inFlight.Store(own)
		s.inFlight = own
	}
	if s.retries = p.retries; s.retries != nil && k.hasRoom() {
		k.retries = retriesWithLimits(k.retries, p.config, &k.group.admissions)
		s.retries = k.retries
	}
	if p.config.RefuseHopeless && k.hasRoom() { // a key without room has nothing to learn from
		s.setChances()
	}
}

// inFlight returns the calls in flight of all keys, and the lowest bound of a key. The bounds of
// the keys differ only if they are adaptive.
func (p *groupParts[K]) inFlight(g *Group[K]) instrument.Bound {
	lowest := inBound.Bound(p.withoutRoom)
	calls := lowest.Calls
	for _, gate := range g.All() {
		if l := gate.setup.Load().inFlight; l != nil && l != p.withoutRoom {
			b := inBound.Bound(l)
			calls += b.Calls
			if b.Limit < lowest.Limit {
				lowest = b
			}
		}
	}
	lowest.Calls = calls
	return lowest
}

// sharing counts the calls in flight of each key without room, which share a bound. A key that gets
// room gets its own bound when none of these calls is in flight any more. So no more than
// MaxConcurrent calls of a key are in flight, however it gets room.
type sharing[K comparable] struct {
	mu       sync.Mutex
	inFlight map[K]int // at least 1 each, so at most as many keys as the shared bound has slots
}

// countShared counts a call that has a slot of the shared bound. It returns false and counts
// nothing if the key has its own bound now.
func (k *keyedGate[K]) countShared() bool {
	c, room := &k.group.sharing, k.hasRoom()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch key := k.hold.key; {
	case room && !k.sharing.Load():
		return false
	case key != key: //nolint:gocritic // a NaN would stay in the map for ever
		return true
	}
	if c.inFlight == nil {
		c.inFlight = map[K]int{}
	}
	c.inFlight[k.hold.key]++
	return true
}

// uncountShared undoes countShared.
func (k *keyedGate[K]) uncountShared() {
	c := &k.group.sharing
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.inFlight[k.hold.key]; n > 1 {
		c.inFlight[k.hold.key] = n - 1
	} else {
		delete(c.inFlight, k.hold.key)
	}
}

func (k *keyedGate[K]) hasShared() bool {
	c := &k.group.sharing
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight[k.hold.key] > 0
}

// ownBound gives a key that has room its own bound if none of its calls has a slot of the shared
// bound any more, and reports whether the setup of the gate was replaced.
func (k *keyedGate[K]) ownBound() bool {
	if !k.sharing.Load() || !k.stopSharing() {
		return false
	}
	k.group.waits.adopt()
	return true
}

// stopSharing replaces the setup of the gate if none of the key's calls has a slot of the shared
// bound.
func (k *keyedGate[K]) stopSharing() bool {
	g := k.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sharing.mu.Lock()
	stays := g.sharing.inFlight[k.hold.key] > 0
	if !stays {
		k.sharing.Store(false)
	}
	g.sharing.mu.Unlock()
	if stays {
		return false
	}
	next := new(setup)
	k.apply(g.parts.Load(), next)
	k.setup.Store(next)
	return true
}
