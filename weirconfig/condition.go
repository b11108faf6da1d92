package weirconfig

import (
	"errors"
	"strings"
	"time"

	"github.com/weir-go/weir/alert"
)

// condition is a condition in text form: above 5%, below 10, above 250ms. A duration is a number of
// seconds.
type condition struct{ alert.Condition }

// UnmarshalText reads a condition.
func (c *condition) UnmarshalText(text []byte) error {
	word, rest, _ := strings.Cut(string(text), " ")
	threshold, err := parseNumber(rest)
	if err != nil {
		var t time.Duration
		t, err = time.ParseDuration(rest)
		threshold = t.Seconds()
	}
	switch {
	case err != nil:
		return err
	case word == "above":
		c.Condition = alert.Above(threshold)
	case word == "below":
		c.Condition = alert.Below(threshold)
	default:
		return errors.New("must be " + c.form())
	}
	return nil
}

func (c *condition) form() string { return "a condition such as above 5%, below 10 or above 250ms" }
