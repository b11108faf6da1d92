package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Config configures a [Limiter].
type Config struct {
	// Link is the Redis that stores the limits. Required.
	Link *Link
	// Limits are the limits of each key, 1 to 10 of them. A request takes its tokens from all of
	// them, or it is refused and takes from none. Redis identifies each by its position, so add and
	// remove limits at the end, and keep their order. Then what was taken still counts, and old and
	// new nodes may work at the same time. A limit of another kind in its place gets ErrForeign for
	// the keys in use: give the limiter another name, under which all limits are full at first. Use
	// [Shared] for a limit of several keys together. Required.
	Limits Limits

	// OnOutage is the policy that decides while Redis is unavailable. Required.
	OnOutage OnOutage
	// Share is this node's share of the limits while Redis is unavailable, above 0 and at most 1.
	// Required if OnOutage is FailLocal, and not allowed otherwise. With m nodes, use 1/m.
	//
	// The node limits each key by a token bucket that is full at first. Its rate and its burst are
	// Share times those of the limit; the burst of a window is its Limit. A request for more tokens
	// than this burst takes a full bucket, and the bucket then owes the rest. So if n is the
	// largest request of a key, the node allows it in any span at most the greater of n and its
	// burst, plus what the rate yields. This is in addition to what Redis allows before and after.
	//
	// Let m nodes have shares of 1 in total, and let L be the Limit or the Burst. If no request is
	// for more than L/m, a SlidingLog or a SlidingWindow allows up to 3·L in a Window around an
	// outage. A FixedWindow, or a CalendarQuota in a time as long as a period, allows 4·L, and a
	// TokenBucket twice what it allows otherwise. With larger requests, or if m is more than L, m·n
	// takes the place of one L: each node allows at least one request of each key.
	Share float64
	// MaxKeys is the maximum number of keys for which FailLocal keeps a bucket. Default 100,000.
	MaxKeys int
	// ShareNew gives all keys for which FailLocal has no room, because MaxKeys keys are in use, one
	// bucket that they share. Otherwise their requests are refused until Redis is asked again. A
	// key is in use until its bucket is full. The metric weir.limiter.no_room counts the requests
	// of such keys, and Result.NoRoom and errors report them. Default false.
	ShareNew bool
	// MaxWaiters is the maximum number of callers that may wait for one key at the same time.
	// Another caller is refused. Default no bound.
	MaxWaiters int

	// MaxDenied is the maximum number of keys whose refusals are remembered, at 200 bytes each plus
	// the key. limiter.Off remembers none. Default 10,000.
	//
	// A remembered refusal is repeated without asking Redis until its RetryAfter has passed, for
	// 10s at most. Requests for fewer tokens still ask Redis. A refusal is therefore only repeated
	// if Redis would refuse too, with one exception. Another process, or another limiter of the
	// same name, may give tokens back, reset the key or raise its limit. Or Redis may lose the key
	// (FLUSHALL, an eviction, a failover). Such a change is noticed only when the time has passed.
	// A change through this limiter is noticed at once. If there is no room, the refusal that ends
	// first is forgotten.
	MaxDenied int
	// MaxLease is the maximum number of tokens per key that this node takes from Redis in advance,
	// to hand them out without a round trip each, from 2 to 1,000,000. Default no leases.
	//
	// With leases, m nodes together allow at most m·MaxLease more in any span of time than the
	// limits themselves, and no more in the long run. The size of a lease follows the demand for
	// the key. It is at most an eighth of the remaining tokens, so there are no leases near the
	// limit. A lease not used for a second is given back within two seconds of its last use. Close
	// gives all leases back. If a process ends without Close, its leases are lost as if they had
	// been used. At most 10,000 keys have leases.
	MaxLease int
	// ShowKeys makes Limiter.Busiest return the keys themselves, which may be personal data or
	// secrets, and keeps their texts. Otherwise it returns hashes of them. Default false.
	ShowKeys bool
}

const (
	maxLimits = 10
	maxLease  = 1_000_000
	// defaultMaxKeys is the default of Config.MaxKeys.
	defaultMaxKeys = 100_000
)

// compile returns the compiled limits, or an error that names every invalid field of them.
func (c Config) compile() ([]limitSpec, error) {
	var faults []error
	limits := make([]limitSpec, 0, len(c.Limits))
	for i, limit := range c.Limits {
		if limit == nil {
			faults = append(faults, fmt.Errorf("fleet: Limits[%d] is nil, must be given", i))
			continue
		}
		s, err := limit.compile()
		faults = append(faults, err)
		s.index = i
		if i > 0 { // the first keeps its keys if others are added
			for j := range s.keySuffixes {
				s.keySuffixes[j] = ":" + strconv.Itoa(i) + s.keySuffixes[j]
			}
		}
		if s.scope >= scopeFirstBy {
			s.scope += i
		}
		if s.sharedBy != nil && c.MaxLease != 0 {
			faults = append(faults, fmt.Errorf("fleet: MaxLease is %d, must be 0 if Limits[%d] is Shared", c.MaxLease, i))
		}
		limits = append(limits, s)
	}
	return limits, errors.Join(faults...)
}

// maxKeys returns MaxKeys or its default.
func (c Config) maxKeys() int { return cmp.Or(c.MaxKeys, defaultMaxKeys) }

// Validate returns nil if c is valid, and otherwise an error that names every invalid field.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("fleet: "+format, args...)) }
	if c.Link == nil {
		fault("Link is nil, must be given")
	}
	if len(c.Limits) < 1 || len(c.Limits) > maxLimits {
		fault("Limits has %d, must have between 1 and %d", len(c.Limits), maxLimits)
	}
	_, err := c.compile()
	faults = append(faults, err, c.OnOutage.validate())
	switch {
	case c.OnOutage == FailLocal && !(c.Share > 0 && c.Share <= 1):
		fault("Share is %v, must be above 0 and at most 1", c.Share)
	case c.OnOutage != FailLocal && c.Share != 0:
		fault("Share is %v, must be 0 unless OnOutage is fail-local", c.Share)
	}
	if c.MaxKeys < 0 || c.MaxKeys > math.MaxInt32 {
		fault("MaxKeys is %d, must lie between 1 and %d (or be 0 for the default)", c.MaxKeys, math.MaxInt32)
	}
	if c.MaxWaiters < 0 {
		fault("MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters)
	}
	if c.MaxDenied < limiter.Off || c.MaxDenied > math.MaxInt32 {
		fault("MaxDenied is %d, must lie between 1 and %d (or be 0 for the default, or limiter.Off)", c.MaxDenied, math.MaxInt32)
	}
	if c.MaxLease != 0 && (c.MaxLease < 2 || c.MaxLease > maxLease) {
		fault("MaxLease is %d, must lie between 2 and %d (or be 0 for no leases)", c.MaxLease, maxLease)
	}
	return errors.Join(faults...)
}

// validateName validates a name that is part of keys, errors and metrics.
func validateName(name string) error {
	if name == "" || strings.ContainsAny(name, "{}") {
		return fmt.Errorf("fleet: the name is %q, must not be empty or have braces", name)
	}
	return nil
}

// Limits are the limits of a [Limiter]. As text they are separated by commas:
//
//	token-bucket 100/s burst 20
//	fixed-window 1000/24h
//	sliding-window 100/1m buckets 6
//	sliding-log 10/1h
//	calendar-quota 10000/day zone Europe/Berlin
//	cl.throttle 15 30 60
//	shared token-bucket 1000/s
//
// The rate of a bucket is in the form of [limiter.ParseRate]. The text of a window has its Limit
// and its Window. An option that is left out has its default. A zone has its name in the tz
// database. cl.throttle is the limit of package rediscell. A Shared limit with a By, a limit of
// package redisson, and a CalendarQuota with any other zone, such as time.Local, have no text.
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
	case CalendarQuota:
		return l.text()
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
	case "calendar-quota":
		return parseQuota(words)
	case "cl.throttle":
		return parseThrottle(words)
	}
	name, found := optionNames[kind]
	if !found {
		return nil, errors.New("must begin with token-bucket, fixed-window, sliding-window, sliding-log, calendar-quota, cl.throttle or shared")
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
