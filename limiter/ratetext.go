package limiter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
