package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weir-go/weir/limiter"
)

// TokenBucket holds for each key up to Burst tokens, which come at a constant rate: the limit of
// first choice. In any span of time all nodes together take at most Burst and what the rate yields
// in that span, to two microseconds. RetryAfter is minimal, to the microsecond. A key that is full
// again is not in Redis.
//
// It is a GCRA in whole microseconds and a fraction, by the server's clock. Fractions are exact as
// long as burst times the denominator of a token's cost in µs is below 2^53 (3/s, 7/min, 10 in 13
// s); beyond that a token costs up to one part in 2^53/burst of a µs more, and never less. If the
// rate or the burst changes, keys keep their missing tokens.
type TokenBucket struct {
	Rate  limiter.Rate // how fast tokens come. Must be given, and finite.
	Burst int          // the most tokens that gather, and so the most that can be taken at once. Default: those of one second, at least 1.
}

const (
	maxBurst = 1 << 40
	maxFill  = 50 * 365 * 24 * time.Hour
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
	events, per := ratePerDuration(b.Rate)
	if fill := float64(b.burst()) / events * float64(per); fill > float64(maxFill) {
		return fmt.Errorf("fleet: Burst is %d, must be gathered within %s at a Rate of %s", b.burst(), maxFill, b.Rate)
	}
	return nil
}

func (b TokenBucket) burst() int {
	if b.Burst > 0 {
		return b.Burst
	}
	events, per := ratePerDuration(b.Rate)
	return max(1, int(min(math.Ceil(events/per.Seconds()), maxBurst, math.MaxInt)))
}

func (b TokenBucket) compile() (scopedLimit, error) {
	if err := b.validate(); err != nil {
		return scopedLimit{}, err
	}
	return scopedLimit{limitSpec: b.spec()}, nil
}

func (b TokenBucket) spec() bucketSpec {
	r := bucketSpec{TokenBucket: b}
	r.Burst = b.burst()
	r.micros, r.numerator, r.denominator = tokenCost(b.Rate, r.Burst)
	return r
}

// bucketRule is a bucket whose tokens cost whole + part/parts µs.
type bucketSpec struct {
	TokenBucket
	micros, numerator, denominator int64
}

func (r bucketSpec) scriptName() string                    { return "tokenbucket" }
func (r bucketSpec) redisKeys(base string) []string        { return []string{base} }
func (r bucketSpec) scriptArgs() []any                     { return []any{r.micros, r.numerator, r.denominator, r.Burst} }
func (r bucketSpec) maxTake() int                          { return r.Burst }
func (r bucketSpec) longRunRate() (float64, time.Duration) { return ratePerDuration(r.Rate) }

// tokenCost is what a token costs in µs, as a whole number and a fraction that Lua can multiply by
// up to burst.
func tokenCost(r limiter.Rate, burst int) (whole, part, parts int64) {
	events, per := r.Ratio()
	cost, parts := int64(per), events*1000
	shared := gcd(cost, parts)
	cost, parts = cost/shared, parts/shared
	whole, part = cost/parts, cost%parts
	most := int64(1) << 53 / (int64(burst) + 1)
	if parts <= most {
		return whole, part, parts
	}
	coarse := int64(1) << (bits.Len64(uint64(most)) - 1)
	high, low := bits.Mul64(uint64(part), uint64(coarse))
	quotient, rest := bits.Div64(high, low, uint64(parts))
	if rest > 0 {
		quotient++
	}
	return whole + int64(quotient)/coarse, int64(quotient) % coarse, coarse
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
