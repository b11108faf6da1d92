package fleet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Limits are the limits of a [Limiter]. As text they are separated by commas:
//
//	token-bucket 100/s burst 20
//	fixed-window 1000/24h
//	sliding-window 100/1m buckets 6
//	sliding-log 10/1h
//	cl.throttle 15 30 60
//	shared token-bucket 1000/s
//
// The rate of a bucket is in the form of [limiter.ParseRate]. The text of a window has its Limit
// and its Window. An option that is left out has its default. cl.throttle is the limit of package
// rediscell. A Shared limit with a By and a limit of package redisson have no text.
type Limits []Limit

// MarshalText returns the text. It returns an error if a limit is invalid or has no text.
func (l Limits) MarshalText() ([]byte, error) {
	texts := make([]string, 0, len(l))
	for i, limit := range l {
		if limit == nil {
			return nil, fmt.Errorf("fleet: Limits[%d] is nil, must be given", i)
		}
		if _, err := limit.compile(); err != nil {
			return nil, err
		}
		text, err := textOf(limit)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return []byte(strings.Join(texts, ", ")), nil
}

// UnmarshalText sets l to the limits in the text. An empty text means no limit. It returns an
// error, and leaves l as it is, if a limit is invalid.
func (l *Limits) UnmarshalText(text []byte) error {
	var limits Limits
	if len(text) > 0 {
		for one := range strings.SplitSeq(string(text), ",") {
			limit, err := parseLimit(strings.Fields(one))
			if err == nil {
				_, err = limit.compile()
			}
			if err != nil {
				return fmt.Errorf("fleet: the limit %.80q: %w", strings.TrimSpace(one), err)
			}
			limits = append(limits, limit)
		}
	}
	*l = limits
	return nil
}

// textOf returns the text of a valid limit.
func textOf(limit Limit) (string, error) {
	switch l := limit.(type) {
	case TokenBucket:
		return "token-bucket " + l.Rate.String() + optionText("burst", l.Burst), nil
	case FixedWindow:
		return "fixed-window " + windowText(l.Limit, l.Window), nil
	case SlidingWindow:
		return "sliding-window " + windowText(l.Limit, l.Window) + optionText("buckets", l.Buckets), nil
	case SlidingLog:
		return "sliding-log " + windowText(l.Limit, l.Window), nil
	case cellLimit:
		return fmt.Sprintf("cl.throttle %d %d %d", l.MaxBurst, l.Count, l.Period/time.Second), nil
	case Shared:
		if l.By == nil {
			text, err := textOf(l.Limit)
			return "shared " + text, err
		}
		return "", errors.New("fleet: a Shared limit with a By has no text")
	}
	return "", errors.New("fleet: a limit of package redisson has no text")
}

func windowText(limit int, window time.Duration) string {
	return limiter.Per(float64(limit), window).String()
}

func optionText(name string, value int) string {
	if value == 0 {
		return ""
	}
	return " " + name + " " + strconv.Itoa(value)
}

// optionNames maps the kinds of limits with a rate to their option.
var optionNames = map[string]string{"token-bucket": "burst", "fixed-window": "", "sliding-window": "buckets", "sliding-log": ""}

func parseLimit(words []string) (limit Limit, err error) {
	if len(words) == 0 {
		return nil, errors.New("is empty")
	}
	kind, words := words[0], words[1:]
	switch kind {
	case "shared":
		limit, err = parseLimit(words)
		return Shared{Limit: limit}, err
	case "cl.throttle":
		return parseThrottle(words)
	}
	name, found := optionNames[kind]
	if !found {
		return nil, errors.New("must begin with token-bucket, fixed-window, sliding-window, sliding-log, cl.throttle or shared")
	}
	value, err := parseOption(words, name)
	if err != nil {
		return nil, err
	}
	if kind == "token-bucket" {
		rate, err := limiter.ParseRate(words[0])
		return TokenBucket{Rate: rate, Burst: value}, err
	}
	most, window, err := parseWindow(words[0])
	switch kind {
	case "fixed-window":
		return FixedWindow{Limit: most, Window: window}, err
	case "sliding-log":
		return SlidingLog{Limit: most, Window: window}, err
	}
	return SlidingWindow{Limit: most, Window: window, Buckets: value}, err
}

// parseOption returns the value of the option after the rate, or 0 if there is none.
func parseOption(words []string, name string) (int, error) {
	switch {
	case len(words) == 1:
		return 0, nil
	case len(words) == 3 && name != "" && words[1] == name:
		value, err := strconv.Atoi(words[2])
		if err != nil || value < 1 {
			return 0, fmt.Errorf("%s is %.20q, must be a number of at least 1", name, words[2])
		}
		return value, nil
	case name == "":
		return 0, errors.New("must have a rate and nothing else")
	}
	return 0, fmt.Errorf("must have a rate, and may have %s and a number", name)
}

// parseWindow parses a limit and the length of a window, such as 10/1m.
func parseWindow(text string) (most int, window time.Duration, err error) {
	number, length, found := strings.Cut(text, "/")
	most, err = strconv.Atoi(number)
	if length != "" && (length[0] < '0' || length[0] > '9') {
		length = "1" + length
	}
	window, wrong := time.ParseDuration(length)
	if !found || err != nil || wrong != nil {
		return 0, 0, fmt.Errorf("%.40q must be like 100/s, 10/1m or 5000/24h", text)
	}
	return most, window, nil
}

// parseThrottle parses the arguments of CL.THROTTLE after the key.
func parseThrottle(words []string) (Limit, error) {
	var numbers [3]int
	if len(words) != len(numbers) {
		return nil, errors.New("must have max_burst, count and period")
	}
	for i, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%.20q must be a number", word)
		}
		numbers[i] = n
	}
	period := time.Duration(numbers[2])
	if period > maxWindow/time.Second {
		return nil, fmt.Errorf("period is %d, must be at most %d", numbers[2], maxWindow/time.Second)
	}
	return cellLimit{MaxBurst: numbers[0], Count: numbers[1], Period: period * time.Second}, nil
}
