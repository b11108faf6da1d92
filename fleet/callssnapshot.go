package fleet

import (
	"time"

	"github.com/weir-go/weir/window"
)

// source counts calls of this node.
type source struct {
	totaler
	before callCounts // what it had counted when it was first followed
}

// outlook is what one node knows of the window, from one moment on: how it will age if
// nothing is heard of the fleet any more. It does not change.
type snapshot struct {
	sources   []source
	captured  callCounts    // what they had counted, as far as it is in left
	others    callCounts    // calls of the other nodes since this one began
	start     time.Duration // when the newest bucket began
	width     time.Duration
	remaining []callCounts // what is left in the window when so many more buckets have begun
}

// window is what is in the window now.
func (o *snapshot) windowAt(now time.Duration) (r callCounts) {
	if begun := int64(max(now-o.start, 0) / o.width); begun < int64(len(o.remaining)) {
		r = o.remaining[begun]
	}
	own := o.ownCalls()
	for i := range r {
		r[i] += max(own[i]-o.captured[i], 0)
	}
	return r
}

// own is what this node has counted.
func (o *snapshot) ownCalls() (r callCounts) {
	for i := range o.sources {
		s := &o.sources[i]
		t := callCountsOf(window.Counts(s.Totals()))
		for i := range r {
			r[i] += max(t[i]-s.before[i], 0)
		}
	}
	return r
}
