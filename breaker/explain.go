package breaker

import (
	"slices"
	"strings"
)

// Explain returns in words why the breaker refuses calls: the reason, the margin, and the last
// failures, the newest first, on one line each. It returns "" unless Tripped returns true. Of each
// failure it shows what FailedCall.String returns.
func (b *Breaker) Explain() string {
	p := b.forReads().phase.Load()
	if p.passes == allCalls {
		return ""
	}
	e := p.refusal
	if e == nil { // evicted since
		return ""
	}
	var s strings.Builder
	s.WriteString(e.Reason)
	if e.Margin != "" {
		s.WriteString("; " + e.Margin)
	}
	for _, f := range slices.Backward(e.LastFailures) {
		s.WriteString("\n" + f.String())
	}
	return s.String()
}
