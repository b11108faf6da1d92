package fleet

import (
	"time"

	"github.com/weir-go/weir/window"
)

// totaler counts its calls.
type totaler interface{ Totals() window.Totals }

// callSource counts calls of this node.
type callSource struct {
	totaler
	before callCounts // its counts when it was first followed
}

// snapshot is one node's view of the window at one moment. It also says how the counts expire if
// Redis does not answer again. It is immutable.
type snapshot struct {
	at       time.Duration // when it was made
	sources  []callSource
	captured callCounts    // the part of the sources' calls that is in remaining
	others   callCounts    // calls of the other nodes since this one began
	start    time.Duration // when the newest bucket began
	width    time.Duration // of a bucket
	// remaining[i]: the counts still in the window when i more buckets have begun
	remaining []callCounts
}

// windowAt returns the calls in the window at a time.
func (s *snapshot) windowAt(now time.Duration) (c callCounts) {
	if begun := int64(max(now-s.start, 0) / s.width); begun < int64(len(s.remaining)) {
		c = s.remaining[begun]
	}
	return c.plus(s.ownCalls().minus(s.captured))
}

// ownCalls returns the calls that this node has counted.
func (s *snapshot) ownCalls() (c callCounts) {
	for i := range s.sources {
		source := &s.sources[i]
		c = c.plus(callCountsOf(window.Counts(source.Totals())).minus(source.before))
	}
	return c
}
