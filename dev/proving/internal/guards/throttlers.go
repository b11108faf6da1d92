package guards

import (
	"context"
	"sync"

	"github.com/go-kratos/aegis/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// silenceGoZero turns off the messages that go-zero prints for the calls that it refuses.
var silenceGoZero = sync.OnceFunc(func() {
	logx.Disable()
	stat.SetReporter(nil)
})

func goZeroRows() []sim.Maker {
	return []sim.Maker{{
		Name: "go-zero", Config: "NewBreaker of its package breaker: it has nothing to configure", Peer: true,
		New: func(s sim.Setting) sim.Guard {
			silenceGoZero()
			seedByClock(s)
			b := &goZero{Breaker: breaker.NewBreaker(breaker.WithName("service"))}
			return &guard{refusals: []error{breaker.ErrServiceUnavailable}, call: b.run}
		},
	}}
}

// goZero locks all that go-zero does before and after a call, because its list of the last errors
// is read without its lock, which the race detector reports. That changes no decision.
type goZero struct {
	breaker.Breaker
	mu sync.Mutex
}

func (b *goZero) run(ctx context.Context, f func(context.Context) error) error {
	b.mu.Lock()
	promise, err := b.Allow()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	err = f(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		promise.Reject(err.Error())
	} else {
		promise.Accept()
	}
	return err
}

func aegisRows() []sim.Maker {
	return []sim.Maker{
		aegis("aegis", "sre.NewBreaker(): above 40 % failures of at least 100 calls in 3 s"),
		aegis("aegis, tuned",
			"WithSuccess(0.5), the ratio of the SRE book that it implements, which refuses less; at least 20 "+
				"calls, because by default it does nothing below 34 calls per second",
			sre.WithSuccess(0.5), sre.WithRequest(20)),
	}
}

// aegis is called as the middleware of kratos calls it. That middleware counts a refused call as
// failed.
func aegis(name, about string, options ...sre.Option) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Peer: true,
		New: func(s sim.Setting) sim.Guard {
			seedByClock(s)
			b := sre.NewBreaker(options...)
			return &guard{
				refusals: []error{circuitbreaker.ErrNotAllowed},
				call: func(ctx context.Context, f func(context.Context) error) error {
					if err := b.Allow(); err != nil {
						b.MarkFailed()
						return err
					}
					err := f(ctx)
					if err != nil {
						b.MarkFailed()
					} else {
						b.MarkSuccess()
					}
					return err
				},
			}
		},
	}
}
