package limiter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of events per span of time. Rates are plain values and can be compared with ==.
// The zero Rate is unset.
//
// A whole number of events is kept exactly. A fraction means the simplest ratio with the same
// float64 value: 0.1 is one in ten, 1.0/3 is one in three. The fastest rate is four events per
// nanosecond. There is no slowest rate, but an event that takes longer than the life of a limiter,
// which is 146 years at slow rates, never happens.
type Rate struct {
	events float64
	per    time.Duration
}

// maxPerNano is the highest rate in events per nanosecond. It is low enough that one word can count
// for decades.
const maxPerNano = 4

// unlimitedPer distinguishes Unlimited from a rate that is infinite by mistake.
const unlimitedPer time.Duration = -1

// PerSecond returns the rate of n events per second.
func PerSecond(n float64) Rate { return Per(n, time.Second) }

// PerMinute returns the rate of n events per minute.
func PerMinute(n float64) Rate { return Per(n, time.Minute) }

// Per returns the rate of n events every d: Per(100, time.Hour) is 100 per hour. It accepts any
// values. The limiter that gets the rate refuses it if n or d is not above 0, or if n is a NaN or
// infinite.
func Per(n float64, d time.Duration) Rate {
	if n == 0 && d == 0 {
		d = unlimitedPer // so that an explicit 0 is invalid, not unset
	}
	return Rate{events: n, per: d}
}

// Unlimited returns the rate of a limiter that allows every request at once.
func Unlimited() Rate { return Rate{events: math.Inf(1), per: unlimitedPer} }

// Validate returns an error if a limiter cannot have this rate, such as the zero Rate.
func (r Rate) Validate() error {
	switch perNano := r.events / float64(r.per); {
	case r == Unlimited():
		return nil
	case r == Rate{}:
		return fmt.Errorf("limiter: Rate is unset, must be above 0")
	case !(r.events > 0) || r.per <= 0:
		return fmt.Errorf("limiter: Rate is %s, must be above 0", r)
	case math.IsInf(r.events, 0):
		return fmt.Errorf("limiter: Rate is %s, must be finite (or Unlimited)", r)
	case perNano > maxPerNano:
		return fmt.Errorf("limiter: Rate is %s, must be at most %d/ns (or Unlimited)", r, maxPerNano)
	}
	return nil
}

// perSecond returns the number of events per second.
func (r Rate) perSecond() float64 {
	if r.per == time.Second {
		return r.events
	}
	return r.events / r.per.Seconds()
}

// tokensPerSecond returns the number of events per second, rounded up and at least 1: the default
// of Burst and Capacity.
func (r Rate) tokensPerSecond() int {
	return max(1, int(min(math.Ceil(r.perSecond()), math.MaxInt)))
}

// Ratio returns the rate as whole events per whole number of nanoseconds. A rate too slow for that
// becomes one event per longest Duration. The rate must be valid and not Unlimited.
func (r Rate) Ratio() (events int64, period time.Duration) {
	for r.events >= math.MaxInt64 {
		// at most 2^65 events in 2^63 ns, so halving both loses nothing that matters
		r.events, r.per = r.events/2, r.per/2
	}
	p, q := simplestFraction(r.events, math.MaxInt64/int64(r.per))
	if p == 0 {
		if slow := float64(r.per) / r.events; slow < math.MaxInt64 {
			return 1, time.Duration(slow)
		}
		return 1, math.MaxInt64
	}
	return p, time.Duration(q) * r.per
}

// simplestFraction returns the first convergent p/q of the continued fraction of x whose quotient
// is x, or the last one with a q of at most bound. x is above 0 and below 2^63.
func simplestFraction(x float64, bound int64) (p, q int64) {
	// integers up to this are exact as float64, so their quotient is correctly rounded
	const exact = 1 << 53
	p, q = int64(x), 1
	oldP, oldQ := int64(1), int64(0)
	for rest := x - math.Floor(x); rest > 0 && float64(p)/float64(q) != x; {
		inverse := 1 / rest
		if inverse >= exact {
			break
		}
		a := int64(inverse)
		rest = inverse - math.Floor(inverse)
		if a > (min(bound, exact)-oldQ)/q || p > 0 && a > (exact-oldP)/p {
			break
		}
		p, oldP = a*p+oldP, p
		q, oldQ = a*q+oldQ, q
	}
	return p, q
}

const unlimitedText = "unlimited"

// ParseRate parses a rate: a number of events, a slash and a duration, such as "100/s", "10/1m",
// "0.5/s" or "5000/24h", or the word "unlimited". The duration is in the form of
// [time.ParseDuration], and "1s" can be shortened to "s". An invalid rate is an error.
func ParseRate(text string) (Rate, error) {
	if text == unlimitedText {
		return Unlimited(), nil
	}
	number, span, found := strings.Cut(text, "/")
	events, err := strconv.ParseFloat(number, 64)
	if !found || err != nil {
		return Rate{}, malformedError(text)
	}
	if span != "" && (span[0] < '0' || span[0] > '9') && span[0] != '.' {
		span = "1" + span
	}
	per, err := time.ParseDuration(span)
	if err != nil {
		return Rate{}, malformedError(text)
	}
	r := Per(events, per)
	if err := r.Validate(); err != nil {
		return Rate{}, err
	}
	return r, nil
}

func malformedError(text string) error {
	return fmt.Errorf("limiter: Rate is %.60q, must be like 100/s, 10/1m, 5000/24h or %s", text, unlimitedText)
}

// String returns the rate in the form of [ParseRate]: "200/s", "7/1m", "10/13s", "unlimited". The
// zero Rate is "unset".
func (r Rate) String() string {
	if r == (Rate{}) {
		return "unset"
	}
	if r == Unlimited() {
		return unlimitedText
	}
	format := byte('f')
	if size := math.Abs(r.events); size != 0 && size < 1e-6 || size >= 1e21 {
		format = 'g'
	}
	return strconv.FormatFloat(r.events, format, -1, 64) + "/" + shortDuration(r.per)
}

// shortDuration returns d.String() without trailing parts that are 0: s, 1m, 24h.
func shortDuration(d time.Duration) string {
	if d == time.Second {
		return "s"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the rate in the form of [ParseRate]. The zero Rate is empty text, and an
// invalid rate is an error.
func (r Rate) MarshalText() ([]byte, error) {
	if r == (Rate{}) {
		return []byte{}, nil
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText sets r to the rate that [ParseRate] returns for the text. Empty text is the zero
// Rate.
func (r *Rate) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = Rate{}
		return nil
	}
	parsed, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// intervalOf returns the time after which a limiter has one token more, on average, or 0 if that is
// not known.
func intervalOf(l any) time.Duration {
	if p, ok := l.(interface{ interval() time.Duration }); ok {
		return p.interval()
	}
	return 0
}

func (b *TokenBucket) interval() time.Duration { return b.state.Load().interval() }

func (k Keyed[K]) interval() time.Duration {
	var p keyPosition[K]
	k.group.locate(&p, k.key)
	return k.group.tiers[p.tier].Load().interval()
}

func (l *Window) interval() time.Duration { return l.window / time.Duration(max(l.limit, 1)) }

func (l *limits) interval() time.Duration {
	if l.counted == 0 || l.burst == math.MaxInt {
		return 0
	}
	return l.until(l.units(0)+l.cost, 0)
}
