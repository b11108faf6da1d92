package limiter

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/stat/view"
)

// Views yields the view of the bucket for package admin and the live page.
func (b *TokenBucket) Views(yield func(view.View) bool) { yield(bucketView{limiterView{b}, b, b}) }

// Views yields the view of the bucket for package admin and the live page.
func (b *LeakyBucket) Views(yield func(view.View) bool) { yield(limiterView{b}) }

// Views yields the view of the joint for package admin and the live page.
func (j *Joint) Views(yield func(view.View) bool) { yield(holdableView{limiterView{j}, j}) }

// Views yields the view of the limiter for package admin and the live page.
func (l *Window) Views(yield func(view.View) bool) { yield(limiterView{l}) }

// Views yields the view of the group for package admin and the live page.
func (g *Group[K]) Views(yield func(view.View) bool) { yield(groupView[K]{g}) }

// limiterView is what package admin and the live page see of a limiter.
type limiterView struct {
	l interface {
		member
		Name() string
	}
}

func (limiterView) Kind() string   { return "limiter" }
func (v limiterView) Name() string { return v.l.Name() }

// Status says when the limiter has a free token.
func (v limiterView) Status() view.Status {
	return view.Status{NextToken: v.l.peek(time.Now(), 0, 1).RetryAfter}
}

// holdableView is limiterView for a limiter with a method Hold.
type holdableView struct {
	limiterView
	view.Holder
}

// bucketView is holdableView for a limiter whose limits can be changed.
type bucketView struct {
	limiterView
	view.Holder

	b *TokenBucket
}

func (v bucketView) Settings() []view.Setting {
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	return v.b.state.Load().settings()
}

func (v bucketView) Set(_ string, s ...view.Setting) (set []view.Setting, err error) {
	v.b.replaceState(time.Since(v.b.epoch), func(old *bucketState) *bucketState {
		var next []view.Setting
		if next, err = settings.Next(old.settings(), s); err != nil {
			return nil
		}
		version := settings.NextVersion()
		set = settings.Named(settings.With(version, next), s)
		state, invalid := old.with(next, version)
		if err = invalid; err != nil {
			set = nil
		}
		return state
	})
	return set, err
}

func (v bucketView) Restore(_ string, set, earlier []view.Setting) (done bool) {
	v.b.replaceState(time.Since(v.b.epoch), func(old *bucketState) *bucketState {
		to, version, ok := settings.Undo(old.settings(), set, earlier)
		if !ok {
			return nil
		}
		next, err := old.with(to, version)
		done = err == nil
		return next
	})
	return done
}

// settings returns the limits as settings. The lock of the bucket is held.
func (s *bucketState) settings() []view.Setting {
	return settings.With(s.set, limitSettings(s.rate, s.configuredBurst))
}

// with returns the state after a change of the settings, or nil if the limits stay, and sets their
// version. The lock of the bucket is held.
func (s *bucketState) with(to []view.Setting, version uint64) (*bucketState, error) {
	rate, burst, err := limitsIn(to)
	if err != nil {
		return nil, err
	}
	return s.withLimits(rate, burst, version), nil
}

// limitSettings returns a rate and a burst, of which 0 is the default, as settings.
func limitSettings(r Rate, burst int) []view.Setting {
	return []view.Setting{{Name: settings.Rate, Value: r.String()}, {Name: settings.Burst, Value: strconv.Itoa(burst)}}
}

// limitsIn returns the valid rate and burst of settings.
func limitsIn(s []view.Setting) (r Rate, burst int, err error) {
	if err = errors.Join(settings.Unmarshal(s, settings.Rate, &r), settings.Int(s, settings.Burst, &burst)); err == nil {
		err = TokenBucketConfig{Rate: r, Burst: burst}.Validate()
	}
	return r, burst, err
}

// Limit returns the rate and the burst in effect.
func (v bucketView) Limit() (Rate, int) {
	s := v.b.state.Load()
	return s.rate, s.burst
}

// groupView is what package admin and the live page see of a group.
type groupView[K comparable] struct{ g *Group[K] }

func (groupView[K]) Kind() string              { return "limiter_group" }
func (v groupView[K]) Name() string            { return v.g.Name() }
func (v groupView[K]) Hold(d time.Duration)    { v.g.holdAll(d) }
func (v groupView[K]) Busiest(n int) []BusyKey { return v.g.Busiest(n) }
func (v groupView[K]) Shown() iter.Seq2[string, view.View] {
	return func(func(string, view.View) bool) {}
}

func (v groupView[K]) Reset(context.Context, string) error {
	v.g.forgetAll()
	return nil
}

func (v groupView[K]) Members() iter.Seq2[string, view.View] {
	return func(yield func(string, view.View) bool) {
		for key := range v.g.All() {
			if !yield(keytext.Label(key), keyView[K]{v.g, key}) {
				return
			}
		}
	}
}

func (v groupView[K]) Key(text string) (view.View, bool) {
	key, ok := any(text).(K)
	return keyView[K]{v.g, key}, ok
}

// Limit returns the rate and the burst in effect of a key without a tier.
func (v groupView[K]) Limit() (Rate, int) { return v.g.first.Load().Rate, v.g.tiers[0].Load().burst }

func (v groupView[K]) Settings() []view.Setting { return v.g.set.Settings(v) }

func (v groupView[K]) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	return v.g.set.Set(v, s)
}

func (v groupView[K]) Restore(_ string, set, earlier []view.Setting) bool {
	return v.g.set.Restore(v, set, earlier)
}

// ReadSettings returns the limits of the keys without a tier.
func (v groupView[K]) ReadSettings() []view.Setting {
	t := v.g.first.Load()
	return limitSettings(t.Rate, t.Burst)
}

func (v groupView[K]) WriteSettings(s []view.Setting) error {
	rate, burst, err := limitsIn(s)
	if err == nil {
		v.g.setTier(time.Since(v.g.epoch), 0, Tier{Rate: rate, Burst: burst})
	}
	return err
}

// keyView is what package admin sees of a key.
type keyView[K comparable] struct {
	g   *Group[K]
	key K
}

func (keyView[K]) Kind() string           { return "limiter" }
func (v keyView[K]) Name() string         { return v.g.Name() }
func (v keyView[K]) Hold(d time.Duration) { v.g.Get(v.key).Hold(d) }

func (v keyView[K]) Reset(context.Context, string) error {
	v.g.Forget(v.key)
	return nil
}
