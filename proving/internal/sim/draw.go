package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Draw draws the parameters of a scenario for one seed.
type Draw struct{ *rand.Rand }

// NewDraw returns the numbers of a seed.
func NewDraw(seed uint64) Draw { return Draw{rand.New(rand.NewPCG(seed, 0))} }

// About returns a value within 30 % of x, all equally likely.
func (d Draw) About(x float64) float64 { return x * (0.7 + 0.6*d.Float64()) }

// AboutTime is About for a time.
func (d Draw) AboutTime(x time.Duration) time.Duration { return time.Duration(d.About(float64(x))) }

// Between returns a value from low to high, all equally likely.
func (d Draw) Between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// Distribution is a distribution of times. At maps a number from 0 to 1 to a time, so that a call has
// the same time whenever and wherever it is served.
type Distribution struct {
	Name string
	At   func(u float64) time.Duration
}

// Exponential returns the exponential distribution with a mean.
func Exponential(mean time.Duration) Distribution {
	return Distribution{"exponential", func(u float64) time.Duration {
		return time.Duration(-math.Log1p(-u) * float64(mean))
	}}
}
