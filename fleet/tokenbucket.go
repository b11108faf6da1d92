package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weir-go/weir/limiter"
)

// TokenBucket holds up to Burst tokens per key, which arrive at a constant rate. It is the limit to
// choose first. In any span of time, all nodes together take at most Burst tokens plus those that
// the rate yields in that span, accurate to 2µs. RetryAfter is the shortest possible wait, rounded
// up to a microsecond. A full bucket takes no space in Redis.
//
// It is a GCRA that counts in microseconds and a fraction, by the server's clock. The fraction is
// exact if Burst times the denominator of a token's cost in µs is below 2^53, as it is for 3/s,
// 7/min or 10 in 13s. Otherwise a token costs up to Burst/2^53 µs more, and never less. Keys keep
// their missing tokens if the rate or the burst changes.
//
// If a token takes whole microseconds, as at 100/s or 60/min but not at 3/s or 7/min, and the
// bucket is the only limit, a shorter script decides. With a *redis.Client, requests that arrive
// together share one script. A key that was last written at another rate or burst, or has a debt,
// needs one more script, until it is written again. Other limits, other clients, and several limits
// together need one script per request.
type TokenBucket struct {
	// Rate is how fast tokens arrive. It must be finite. Required.
	Rate limiter.Rate
	// Burst is the maximum number of tokens a bucket holds, which is also the most that one request
	// can take, up to 2^40. Default the tokens of one second, at least 1.
	Burst int
}

const (
	maxBurst    = 1 << 40
	maxFillTime = 50 * 365 * 24 * time.Hour
)

func (b TokenBucket) validate() error {
	if err := b.Rate.Validate(); err != nil {
		return err
	}
	switch {
	case b.Rate == limiter.Unlimited():
		return errors.New("fleet: Rate is unlimited, must be finite")
	case b.Burst < 0 || int64(b.Burst) > maxBurst:
		return fmt.Errorf("fleet: Burst is %d, must lie between 1 and %d (or be 0 for the default)", b.Burst, int64(maxBurst))
	}
	events, per := b.Rate.Ratio()
	if fill := float64(b.burst()) / float64(events) * float64(per); fill > float64(maxFillTime) {
		return fmt.Errorf("fleet: Burst is %d, must be refilled within %s at a Rate of %s", b.burst(), maxFillTime, b.Rate)
	}
	return nil
}

func (b TokenBucket) burst() int {
	if b.Burst > 0 {
		return b.Burst
	}
	events, per := b.Rate.Ratio()
	return max(1, int(min(math.Ceil(float64(events)/per.Seconds()), maxBurst, math.MaxInt)))
}

func (b TokenBucket) compile() (limitSpec, error) {
	if err := b.validate(); err != nil {
		return limitSpec{}, err
	}
	burst := b.burst()
	cost := tokenCostOf(b.Rate, burst)
	events, per := b.Rate.Ratio()
	return limitSpec{
		script: "tokenbucket", args: []any{cost.micros, cost.numerator, cost.denominator, burst}, keySuffixes: []string{""},
		maxTake: burst, maxCharge: min(maxBurst, math.MaxInt), events: float64(events), per: per, cost: cost,
	}, nil
}

// tokenCost is the time in which one token arrives: micros + numerator/denominator µs.
type tokenCost struct {
	micros, numerator, denominator int64
}

// times returns the time in which n tokens arrive.
func (c tokenCost) times(n int) time.Duration {
	micros := float64(c.micros) + float64(c.numerator)/float64(c.denominator)
	return time.Duration(float64(n) * micros * float64(time.Microsecond))
}

// tokenCostOf returns the cost of a token, with a fraction that Lua can multiply by up to burst
// without loss.
func tokenCostOf(r limiter.Rate, burst int) tokenCost {
	events, per := r.Ratio()
	cost, parts := int64(per), events*1000
	shared := gcd(cost, parts)
	cost, parts = cost/shared, parts/shared
	whole, part := cost/parts, cost%parts
	most := int64(1) << 53 / (int64(burst) + 1)
	if parts <= most {
		return tokenCost{whole, part, parts}
	}
	coarse := int64(1) << (bits.Len64(uint64(most)) - 1)
	high, low := bits.Mul64(uint64(part), uint64(coarse))
	quotient, rest := bits.Div64(high, low, uint64(parts))
	if rest > 0 {
		quotient++ // rounded up, so that the rate is never exceeded
	}
	return tokenCost{whole + int64(quotient)/coarse, int64(quotient) % coarse, coarse}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var quickBucketScript = newScript("quickbucket").decision(2)

// quickBucket is a token bucket whose tokens cost whole microseconds. Its own script takes Redis
// less than half the time, and decides for many callers at once. For decisions at given times, and
// for keys written at a different rate, it uses the script of all limits.
type quickBucket struct {
	*scriptBackend
	cost, burst int64  // µs per token, and tokens
	valueSuffix string // of a key's value, after the time
}

func newQuickBucket(s *scriptBackend) *quickBucket {
	cost, burst := s.limits[0].cost, s.limits[0].maxTake
	suffix := fmt.Sprintf(" 0 %d %d %d %d", cost.micros, cost.numerator, cost.denominator, burst)
	return &quickBucket{scriptBackend: s, cost: cost.micros, burst: int64(burst), valueSuffix: suffix}
}

func (b *quickBucket) take(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	if n < 0 || int64(n) > b.burst || !at.IsZero() {
		return b.scriptBackend.take(ctx, k, n, at)
	}
	cost := int64(n) * b.cost
	key := b.keysOf(k, b.limits[0])[0]
	reply, err := b.link.decide(ctx, quickBucketScript, key, cost, b.burst*b.cost, b.valueSuffix)
	switch {
	case err != nil:
		return nil, err
	case reply[1] < 0: // the script cannot decide about this key
		return b.scriptBackend.take(ctx, k, n, at)
	case reply[1] > b.burst*b.cost || reply[0] != reply[1]+cost-b.burst*b.cost:
		return nil, b.invalidReply()
	}
	return []limiter.Result{b.result(cost, reply[0], reply[1])}, nil
}

// result converts the script's reply, in µs: over is by how much the request would overdraw the
// bucket, and fullIn how long the bucket takes to be full without the request.
func (b *quickBucket) result(cost, over, fullIn int64) limiter.Result {
	const us = time.Microsecond
	if over > 0 {
		return limiter.Result{
			Limit: int(b.burst), Remaining: int(max(cost-over, 0) / b.cost),
			RetryAfter: time.Duration(over) * us, ResetAfter: time.Duration(fullIn) * us,
		}
	}
	return limiter.Result{OK: true, Limit: int(b.burst), Remaining: int(-over / b.cost), ResetAfter: time.Duration(fullIn+cost) * us}
}
