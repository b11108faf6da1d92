package throttle_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-go/weir/stat"
)

var (
	errDown = errors.New("down")
	t0      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func bg() context.Context { return context.Background() }

func succeed(context.Context) error { return nil }

func fail(context.Context) error { return errDown }

// timeAfter returns the time d after t0.
func timeAfter(d time.Duration) time.Time { return t0.Add(d) }

// metricsOf returns the metrics of a source by name and attributes.
func metricsOf(s stat.Source) map[string]float64 {
	seen := map[string]float64{}
	for s, v := range s.Observe {
		seen[strings.TrimPrefix(s.Instrument.Name, "weir.breaker.")+" "+strings.Join(s.Values[1:len(s.Values)-1], " ")] = v
	}
	return seen
}
