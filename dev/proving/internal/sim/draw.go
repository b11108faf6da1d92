package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Draw draws the parameters of a scenario for one seed.
type Draw struct{ *rand.Rand }

// NewDraw returns the numbers of a seed.
func NewDraw(seed uint64) Draw { return Draw{rand.New(rand.NewPCG(seed, 0))} }

// About returns a value within 30 % of x, all equally likely.
func (d Draw) About(x float64) float64 { return x * (0.7 + 0.6*d.Float64()) }

// AboutTime is like About, but for a duration.
func (d Draw) AboutTime(x time.Duration) time.Duration { return time.Duration(d.About(float64(x))) }

// Between returns a value from low to high, all equally likely.
func (d Draw) Between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// Distribution is a distribution of times. At maps a number from 0 to 1 to a time, so that a call
// has the same time whenever and wherever it is served.
type Distribution struct {
	// Text is the form of the distribution in a file, such as "lognormal 50ms 0.8".
	Text string
	At   func(u float64) time.Duration
}

// Exponential returns the exponential distribution with a mean.
func Exponential(mean time.Duration) Distribution {
	return Distribution{fmt.Sprintf("exponential %v", mean), func(u float64) time.Duration {
		return time.Duration(-math.Log1p(-u) * float64(mean))
	}}
}

// Constant returns the distribution of a single time.
func Constant(d time.Duration) Distribution {
	return Distribution{fmt.Sprintf("constant %v", d), func(float64) time.Duration { return d }}
}

// Lognormal returns the lognormal distribution with a mean. sigma is the standard deviation of the
// logarithm: with 1, the 99th percentile is 10 times the median.
func Lognormal(mean time.Duration, sigma float64) Distribution {
	median := float64(mean) / math.Exp(sigma*sigma/2)
	return Distribution{fmt.Sprintf("lognormal %v %v", mean, sigma), func(u float64) time.Duration {
		return time.Duration(median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*u-1)))
	}}
}

// Bimodal returns a mixture of two exponential distributions, such as the times of a cache. The
// mean is miss for the share misses of the calls, and hit for the others.
func Bimodal(hit, miss time.Duration, misses float64) Distribution {
	return Distribution{fmt.Sprintf("bimodal %v %v %v", hit, miss, misses), func(u float64) time.Duration {
		if u < misses {
			return Exponential(miss).At(u / misses)
		}
		return Exponential(hit).At((u - misses) / (1 - misses))
	}}
}

// Pareto returns a Pareto distribution with the shortest time and the exponent: a time is longer
// than x times the shortest with probability x^-exponent. No time is longer than 1000 times the
// shortest.
func Pareto(shortest time.Duration, exponent float64) Distribution {
	return Distribution{fmt.Sprintf("pareto %v %v", shortest, exponent), func(u float64) time.Duration {
		return time.Duration(float64(shortest) * min(math.Pow(1-u, -1/exponent), 1000))
	}}
}

// Part is one of the kinds of calls of a mixture.
type Part struct {
	// Share is the share of the calls that are of this kind.
	Share float64
	Distribution
}

// Mixture returns the distribution of the times of calls of several kinds. The shares must add up
// to 1.
func Mixture(parts ...Part) Distribution {
	var texts []string
	for _, p := range parts {
		texts = append(texts, fmt.Sprintf("%v %s", p.Share, p.Text))
	}
	return Distribution{strings.Join(texts, " + "), func(u float64) time.Duration {
		for _, p := range parts[:len(parts)-1] {
			if u < p.Share {
				return p.At(u / p.Share)
			}
			u -= p.Share
		}
		last := parts[len(parts)-1]
		return last.At(min(u/last.Share, 1-1e-9))
	}}
}
