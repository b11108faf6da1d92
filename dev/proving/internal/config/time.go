package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// serviceTime is a distribution of times in text form.
type serviceTime sim.Distribution

// UnmarshalText reads a time alone, which is the mean of an exponential distribution, or one of
//
//	constant 50ms
//	exponential 50ms
//	lognormal 50ms 1.0      the mean, and the standard deviation of the logarithm
//	bimodal 5ms 200ms 10%   the means of two exponential distributions, and the share of the second
//	pareto 5ms 1.5          the shortest time, and the exponent
//
// or a mixture of these with their shares, such as 90% constant 5ms + 10% lognormal 2s 0.5.
func (s *serviceTime) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "+") {
		return s.mixture(text)
	}
	var name string
	var times []time.Duration
	var number float64
	for i, word := range strings.Fields(string(text)) {
		t, err := time.ParseDuration(word)
		x, isNumber := parseNumber(word)
		switch {
		case err == nil && t > 0 && number == 0:
			times = append(times, t)
		case isNumber && x > 0 && number == 0:
			number = x
		case i == 0:
			name = word
		default:
			return errTime(text)
		}
	}
	switch form := fmt.Sprintf("%s %d", name, len(times)); {
	case form == "constant 1" && number == 0:
		*s = serviceTime(sim.Constant(times[0]))
	case (form == " 1" || form == "exponential 1") && number == 0:
		*s = serviceTime(sim.Exponential(times[0]))
	case form == "lognormal 1" && number > 0 && number <= 5:
		*s = serviceTime(sim.Lognormal(times[0], number))
	case form == "bimodal 2" && number > 0 && number < 1:
		*s = serviceTime(sim.Bimodal(times[0], times[1], number))
	case form == "pareto 1" && number >= 1 && number <= 10:
		*s = serviceTime(sim.Pareto(times[0], number))
	default:
		return errTime(text)
	}
	return nil
}

// mixture reads a mixture.
func (s *serviceTime) mixture(text []byte) error {
	var parts []sim.Part
	sum := 0.0
	for part := range strings.SplitSeq(string(text), "+") {
		share, of, _ := strings.Cut(strings.TrimSpace(part), " ")
		x, ok := parseNumber(share)
		var t serviceTime
		if err := t.UnmarshalText([]byte(of)); err != nil || !ok || x <= 0 {
			return errTime(text)
		}
		parts = append(parts, sim.Part{Share: x, Distribution: sim.Distribution(t)})
		sum += x
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("%.80q has shares that add up to %v, must be 1", text, sum)
	}
	*s = serviceTime(sim.Mixture(parts...))
	return nil
}

func errTime(text []byte) error {
	return fmt.Errorf("%.60q must be like 50ms, constant 50ms, lognormal 50ms 1.0 or bimodal 5ms 200ms 10%%", text)
}

// parseNumber reads a number such as 0.5 or 50%.
func parseNumber(text string) (x float64, ok bool) {
	number, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	return x, err == nil
}
