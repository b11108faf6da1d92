// Package guard detects a doubled cost, on any machine, even a busy one.
//
// It compares the fastest of many short turns of weir with a floor of the machine, and with another
// library. A machine with a slow clock changes the first ratio, and one with slow locks changes the
// second. So a cost counts as too high only if both ratios are too high. A cost that is too high is
// measured again, and must be too high each time, because noise comes and goes, but a doubled cost
// stays.
package guard

import (
	"fmt"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

// attempts is the number of measurements. The test fails only if all of them find a cost too high.
const attempts = 3

// Finding is the result for one cost.
type Finding struct {
	rows.Guarded
	Floor, Peer float64 // the cost of weir divided by the cost of the floor and of the peer
	Attempts    int
}

// Slower reports whether the cost is too high.
func (f Finding) Slower() bool { return f.Floor > f.ByFloor && f.Peer > f.ByPeer }

// Notices returns the factor by which the cost must grow to be too high.
func (f Finding) Notices() float64 { return max(f.ByFloor/f.Floor, f.ByPeer/f.Peer) }

func (f Finding) String() string {
	return fmt.Sprintf("%-26s %.2f of the floor (bound %.2f), %.2f of %s (bound %.2f): %s",
		f.Name, f.Floor, f.ByFloor, f.Peer, f.Guarded.Peer.Name, f.ByPeer, f.verdict())
}

// maxNotice bounds the factor that Notices returns, so that a doubled cost is always detected.
const maxNotice = 1.9

// boundMargin is the factor between a measured ratio and its bound.
const boundMargin = 1.6

func (f Finding) verdict() string {
	switch {
	case f.Slower():
		return "TOO SLOW"
	case f.Notices() > maxNotice:
		return fmt.Sprintf("ok, but a doubled cost would pass: lower the bounds to %.2f and %.2f", boundMargin*f.Floor, boundMargin*f.Peer)
	}
	return fmt.Sprintf("ok, detects × %.2f", f.Notices())
}

// Meter compares two costs. It returns the cost of weir divided by that of the other loop.
type Meter func(weir, other measure.Loop) (ratio float64, err error)

// Quickest returns a meter that compares the fastest of many turns.
func Quickest(p measure.Plan) Meter {
	return func(weir, other measure.Loop) (float64, error) {
		c, err := p.Compare(measure.Serial, weir, other, nil)
		if err != nil {
			return 0, err
		}
		return c.Best(), nil
	}
}

// Watch measures the cost until it is not too high, up to attempts times.
func Watch(m Meter, g rows.Guarded) (f Finding, err error) {
	weir, floor, peer := g.Weir.Make(), g.Floor.Make(), g.Peer.Make()
	f.Guarded = g
	for f.Attempts < attempts {
		f.Attempts++
		if f.Floor, err = m(weir, floor); err != nil {
			return f, fmt.Errorf("%s against the floor: %w", g.Name, err)
		}
		if f.Peer, err = m(weir, peer); err != nil {
			return f, fmt.Errorf("%s against the peer: %w", g.Name, err)
		}
		if !f.Slower() {
			break
		}
	}
	return f, nil
}
