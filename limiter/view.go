package limiter

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/view"
)

// Views yields the view of the bucket for package admin and the live page.
func (b *TokenBucket) Views(yield func(view.View) bool) { yield(bucketView{limiterView{b}, b, b}) }

// Views yields the view of the bucket for package admin and the live page.
func (b *LeakyBucket) Views(yield func(view.View) bool) { yield(limiterView{b}) }

// Views yields the view of the joint for package admin and the live page.
func (j *Joint) Views(yield func(view.View) bool) { yield(holdableView{limiterView{j}, j}) }

// Views yields the view of the limiter for package admin and the live page.
func (l *windowLimiter) Views(yield func(view.View) bool) { yield(limiterView{l}) }

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
	s := v.b.state.Load()
	return limitSettings(s.rate, s.configuredBurst, s.set)
}

func (v bucketView) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	rate, burst, err := limitsIn(append(v.Settings(), s...))
	if err != nil {
		return nil, err
	}
	version := settings.NextVersion()
	v.b.setLimitsIf(rate, burst, version, func(*bucketState) bool { return true })
	return limitSettings(rate, burst, version), nil
}

func (v bucketView) Restore(_ string, set, earlier []view.Setting) bool {
	rate, burst, err := limitsIn(earlier)
	return err == nil && v.b.setLimitsIf(rate, burst, earlier[0].Version, func(old *bucketState) bool { return old.set == set[0].Version })
}

// limitSettings returns a rate and a burst, of which 0 is the default, as settings.
func limitSettings(r Rate, burst int, version uint64) []view.Setting {
	return []view.Setting{
		{Name: settings.Rate, Value: r.String(), Version: version},
		{Name: settings.Burst, Value: strconv.Itoa(burst), Version: version},
	}
}

// limitsIn returns the rate and the burst of settings. The last ones count.
func limitsIn(s []view.Setting) (r Rate, burst int, err error) {
	err = errors.Join(settings.Known(s, settings.Rate, settings.Burst), settings.Unmarshal(s, settings.Rate, &r), settings.Int(s, settings.Burst, &burst))
	if err == nil {
		err = TokenBucketConfig{Rate: r, Burst: burst}.Validate()
	}
	return r, burst, err
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

// Settings returns the limits of the keys without a tier.
func (v groupView[K]) Settings() []view.Setting {
	var t *Tier
	version := v.g.set.Read(func() { t = v.g.first.Load() })
	return limitSettings(t.Rate, t.Burst, version)
}

func (v groupView[K]) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	rate, burst, err := limitsIn(append(v.Settings(), s...))
	if err != nil {
		return nil, err
	}
	version, _ := v.g.set.Change(func() error {
		v.g.setTier(time.Since(v.g.epoch), 0, Tier{Rate: rate, Burst: burst})
		return nil
	})
	return limitSettings(rate, burst, version), nil
}

func (v groupView[K]) Restore(_ string, set, earlier []view.Setting) bool {
	rate, burst, err := limitsIn(earlier)
	return err == nil && v.g.set.Restore(set[0].Version, earlier[0].Version, func() {
		v.g.setTier(time.Since(v.g.epoch), 0, Tier{Rate: rate, Burst: burst})
	})
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
