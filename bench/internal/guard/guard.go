// Package guard notices when a cost has doubled, on any machine and however busy it is.
//
// It looks at ratios alone, of the quickest of many short turns: ours by the machine's floor, and ours by another
// library. A machine with a slow clock moves the one and one with slow locks the other, so a cost is too high only
// where both are, and only where it stays so each time it is measured again: noise comes and goes, a doubled cost
// stays.
package guard

import (
	"fmt"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/bench/internal/rows"
)

// attempts is how often a cost is measured before it is called too high.
const attempts = 3

// Finding is what was found of one cost.
type Finding struct {
	rows.Guarded
	Floor, Peer float64 // ours as a share of each
	Attempts    int
}

// Slower says whether the cost is too high.
func (f Finding) Slower() bool { return f.Floor > f.ByFloor && f.Peer > f.ByPeer }

// Notices is how many times as high the cost must be to be called too high.
func (f Finding) Notices() float64 { return max(f.ByFloor/f.Floor, f.ByPeer/f.Peer) }

func (f Finding) String() string {
	return fmt.Sprintf("%-26s %.2f of the floor (bound %.2f), %.2f of %s (bound %.2f): %s",
		f.Name, f.Floor, f.ByFloor, f.Peer, f.Guarded.Peer.Name, f.ByPeer, f.verdict())
}

// roomy is how much of a cost may be noticed at the latest: a doubled one has to be, for sure.
const roomy = 1.9

// usual is what bounds are set to, as a multiple of what is measured.
const usual = 1.6

func (f Finding) verdict() string {
	switch {
	case f.Slower():
		return "TOO SLOW"
	case f.Notices() > roomy:
		return fmt.Sprintf("fine, but a doubled cost would pass: lower the bounds to %.2f and %.2f", usual*f.Floor, usual*f.Peer)
	}
	return fmt.Sprintf("fine, notices × %.2f", f.Notices())
}

// Meter compares two costs: it returns ours as a share of theirs.
type Meter func(ours, theirs measure.Loop) (ratio float64, err error)

// Quickest is a meter that compares the quickest of many turns.
func Quickest(p measure.Plan) Meter {
	return func(ours, theirs measure.Loop) (float64, error) {
		c, err := p.Compare(measure.Serial, ours, theirs, nil)
		if err != nil {
			return 0, err
		}
		return c.Best(), nil
	}
}

// Watch measures the cost until it is found to be fine, a few times at most.
func Watch(m Meter, g rows.Guarded) (f Finding, err error) {
	ours, floor, peer := g.Ours.Make(), g.Floor.Make(), g.Peer.Make()
	f.Guarded = g
	for f.Attempts < attempts {
		f.Attempts++
		if f.Floor, err = m(ours, floor); err != nil {
			return f, fmt.Errorf("%s by the floor: %w", g.Name, err)
		}
		if f.Peer, err = m(ours, peer); err != nil {
			return f, fmt.Errorf("%s by the peer: %w", g.Name, err)
		}
		if !f.Slower() {
			break
		}
	}
	return f, nil
}
