package migrating

import (
	"context"
	"time"

	"github.com/afex/hystrix-go/hystrix"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

//readme:hystrix-before
func hystrixUsers() {
	hystrix.ConfigureCommand("users", hystrix.CommandConfig{
		Timeout:                1000, // ms
		MaxConcurrentRequests:  10,
		RequestVolumeThreshold: 20,
		ErrorPercentThreshold:  50,
		SleepWindow:            5000, // ms
	})
}

func hystrixGet(ctx context.Context, get, cached fetch, id int) (user *User, err error) {
	err = hystrix.DoC(ctx, "users", func(ctx context.Context) (err error) {
		user, err = get(ctx, id)
		return err
	}, func(ctx context.Context, _ error) (err error) {
		user, err = cached(ctx, id)
		return err
	})
	return user, err
}

//readme:end

//readme:hystrix-after
type users struct {
	breaker *breaker.Breaker
	slots   *inflight.Limiter
}

func newUsers() *users {
	return &users{
		slots: inflight.New(inflight.Config{Limit: 10}),
		breaker: breaker.New("users", breaker.Config{
			Window:      10 * time.Second,
			MinCalls:    20,
			FailureRate: 0.5,
			Cooldown:    5 * time.Second,
			Probes:      1,
			Recovery:    breaker.Off,
		}),
	}
}

func (u *users) get(ctx context.Context, get, cached fetch, id int) (*User, error) {
	slot, err := u.slots.TryAcquire(ctx)
	if err != nil {
		return cached(ctx, id)
	}
	defer slot.Done(ctx, nil)
	user, err := breaker.Do(ctx, u.breaker, func(ctx context.Context) (*User, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return get(ctx, id)
	})
	if err != nil {
		return cached(ctx, id)
	}
	return user, nil
}

//readme:end
