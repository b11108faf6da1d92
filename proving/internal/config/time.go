package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/proving/internal/sim"
)

// serviceTime is a distribution of times in text form.
type serviceTime sim.Distribution

// UnmarshalText reads a time alone, which is the mean of an exponential distribution, or one of
//
//	constant 50ms
//	exponential 50ms
//	lognormal 50ms 1.0      the mean, and the standard deviation of the logarithm
//	bimodal 5ms 200ms 10%   the means of two exponential distributions, and the share of the second
func (s *serviceTime) UnmarshalText(text []byte) error {
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
	default:
		return errTime(text)
	}
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
