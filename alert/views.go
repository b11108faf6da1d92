package alert

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/window"
)

// viewConfig divides a span into 60 buckets, or into more if a bucket would otherwise be longer
// than a window allows.
func viewConfig(span time.Duration) window.Config {
	const longestBucket = time.Hour
	hours := int((span + longestBucket - 1) / longestBucket)
	return window.Config{Span: span, Buckets: max(60, hours)}
}

// spanErrors returns the faults of the spans.
func spanErrors(spans ...time.Duration) (errs []error) {
	for _, span := range spans {
		if span <= 0 {
			errs = append(errs, fmt.Errorf("the span is %v, must be positive", span))
		} else if err := viewConfig(span).Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// view is a moving window over a span.
type view struct {
	*window.View
	span  time.Duration
	first time.Time // when the first sample was taken
}

// coverage returns the share of the span since the first sample, from 0 to 1.
func (v view) coverage(t time.Time) float64 {
	return min(max(float64(t.Sub(v.first))/float64(v.span), 0), 1)
}

// views are moving windows over one source, one per span.
type views struct {
	of    Counted
	spans []time.Duration
	views []view
}

func newViews(of Counted, spans ...time.Duration) *views { return &views{of: of, spans: spans} }

// sample reads the source once and returns the updated views. It makes the views at the first
// sample, because a replay may begin at any time.
func (v *views) sample(t time.Time) []view {
	totals := v.of.Totals()
	for _, span := range v.spans[len(v.views):] {
		v.views = append(v.views, view{window.NewViewAt(viewConfig(span), t), span, t})
	}
	for _, one := range v.views {
		one.SampleAt(t, totals)
	}
	return v.views
}

// shortText returns the span without trailing zeros: 5m, not 5m0s.
func shortText(span time.Duration) string {
	text := span.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
