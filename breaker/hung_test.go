package breaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// eachHungConfig calls each for windows from the shortest to the longest, and for each window with
// several values of SlowCall.
func eachHungConfig(each func(name string, c breaker.Config)) {
	const day = 24 * time.Hour
	for _, c := range []breaker.Config{
		{Window: time.Millisecond, Buckets: 1},
		{Window: time.Millisecond},
		{Window: time.Second},
		{},
		{Window: 10 * time.Second, Buckets: 1},
		{Window: 10 * time.Minute, Buckets: 3},
		{Window: time.Hour, Buckets: 1},
		{Window: 3 * day, Buckets: 72},
		{Window: 30 * day, Buckets: 720},
		{LastCalls: 20},
		{LastCalls: 100_000},
	} {
		for _, slow := range []time.Duration{1, time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, 10 * time.Minute} {
			c.SlowCall, c.HungCalls, c.Cooldown = slow, true, 1000*day
			each(fmt.Sprintf("window %v of %d buckets, %d last calls, slow %v", c.Window, c.Buckets, c.LastCalls, slow), c)
		}
	}
}

// beginHungCalls begins calls that never end.
func beginHungCalls(t *testing.T, b *breaker.Breaker, calls int) {
	t.Helper()
	for range calls {
		_, err := b.Allow()
		require.NoError(t, err)
	}
}

func TestHungCallsAreNoticedAfterTwiceSlowCallAndASecond(t *testing.T) {
	eachHungConfig(func(name string, c breaker.Config) {
		for seed := range uint64(6) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 8))
				bound := 2*c.SlowCall + time.Second
				b := breaker.New("b", c)
				// so that the calls begin anywhere in a time slice
				time.Sleep(time.Duration(r.Int64N(int64(3 * bound))))
				run(t, b, int(seed), succeed)
				beginHungCalls(t, b, 40)
				began := time.Now()
				for n := r.IntN(20); n > 0; n-- {
					// other calls, which a breaker that has opened refuses
					time.Sleep(min(time.Duration(r.Int64N(int64(bound/8))), time.Until(began.Add(bound))))
					_ = b.Run(bg(), succeed)
				}
				time.Sleep(time.Until(began.Add(bound + 1)))
				require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen, "%s, seed %d", name, seed)
			})
		}
	})
}

// A call that comes later than the bound may be the first one of a process that was suspended.
func TestHungCallsAreNoticedHalfASecondAfterAPause(t *testing.T) {
	eachHungConfig(func(name string, c breaker.Config) {
		for _, length := range []time.Duration{2, 5, 1000} {
			synctest.Test(t, func(t *testing.T) {
				bound := 2*c.SlowCall + time.Second
				b := breaker.New("b", c)
				beginHungCalls(t, b, 40)
				time.Sleep(length * bound)
				require.NoError(t, b.Run(bg(), succeed), name)
				time.Sleep(500*time.Millisecond + bound/2) // the next slice
				require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen, "%s, after %v", name, length*bound)
			})
		}
	})
}

func TestASuspendedProcessHasNoCallsThatHang(t *testing.T) {
	eachHungConfig(func(name string, c breaker.Config) {
		for _, length := range []time.Duration{30 * time.Second, time.Hour, 100 * 24 * time.Hour} {
			if length < 3*(2*c.SlowCall+time.Second) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New("b", c)
				for range 3 {
					permits := holdPermits(t, b, 40)
					time.Sleep(length)
					for range 10 { // calls that come before the answers do
						require.NoError(t, b.Run(bg(), succeed), name)
						time.Sleep(40 * time.Millisecond)
					}
					ctx, cancel := context.WithDeadline(bg(), time.Now().Add(-length/2))
					for _, p := range permits { // their deadlines have passed meanwhile
						p.Done(ctx, ctx.Err())
					}
					cancel()
				}
				require.False(t, b.Tripped(), name)
			})
		}
	})
}

// A stale time counts as the newest time, which is known to an eighth of SlowCall. So a call that
// begins at a stale time does not look old.
func TestACallThatBeginsAtAStaleTimeDoesNotHang(t *testing.T) {
	eachHungConfig(func(name string, c breaker.Config) {
		for _, back := range []time.Duration{1, time.Second, time.Minute, time.Hour} {
			b, now := breaker.NewAt("b", c, t0), t0.Add(time.Hour)
			call := func(at time.Time) *breaker.Permit {
				p, err := b.AllowAt(at)
				require.NoError(t, err, "%s, %v back", name, back)
				return &p
			}
			call(t0).RecordAt(t0, breaker.Success)
			call(now).RecordAt(now, breaker.Success)
			for range 40 {
				call(now.Add(-back))
			}
			call(now.Add(c.SlowCall - c.SlowCall/8)).Record(breaker.Ignored)
		}
	})
}

func TestARecoveringBreakerNoticesHungCalls(t *testing.T) {
	eachHungConfig(func(name string, c breaker.Config) {
		c.Cooldown, c.ProbeTimeout, c.MinCalls, c.Recovery = time.Second, 1<<60, 2, 1<<60
		synctest.Test(t, func(t *testing.T) {
			b := breaker.New("b", c)
			b.OpenFor(time.Second)
			time.Sleep(time.Second)
			run(t, b, 2, succeed)
			require.Equal(t, breaker.Recovering, b.State())
			for range 40 {
				_, _ = b.Allow()
			}
			time.Sleep(2*c.SlowCall + time.Second + 1)
			require.ErrorIs(t, b.Run(bg(), succeed), breaker.ErrOpen, name)
			require.Equal(t, breaker.Open, b.State(), name)
		})
	})
}

// Scenario B88.
func TestCallsThatHangOpen(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, SlowCall: time.Second, HungCalls: true, MinCalls: 20}
	s := runScript(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "0.9 S . closed", "3.1 S r open")
	require.Equal(t, "slow rate 95.2% of 21 calls, limit 50%, 20 of them still in flight", s.told.changes()[0].Reason)
	s.do("4 gggggggggggggggggggg !!!!!!!!!!!!!!!!!!!! open")
	s.do("8.1 SSS ... closed", "9 SSSSSSSSSSSSSSSSSSSSSSSSS ......................... closed", "20 S . closed")

	c.HungCalls = false
	runScript(t, c, "0 AAAAAAAAAAAAAAAAAAAA .................... closed", "3.1 S . closed")
}
