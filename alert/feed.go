package alert

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/window"
)

// longestBucket is the longest that a bucket of a window can be.
const longestBucket = time.Hour

// viewShape divides a span into 60 buckets, or into more where they would be longer
// than a bucket may be.
func viewShape(span time.Duration) window.Config {
	hours := int((span + longestBucket - 1) / longestBucket)
	return window.Config{Span: span, Buckets: max(60, hours)}
}

// spanFaults says which spans make no sense.
func spanFaults(spans ...time.Duration) (errs []error) {
	for _, span := range spans {
		if span <= 0 {
			errs = append(errs, fmt.Errorf("its span is %v, must be above 0", span))
		} else if err := viewShape(span).Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// feed samples one source into views of several spans.
type feed struct {
	of     Counted
	shapes []window.Config
	views  []*window.View
}

func newFeed(of Counted, shapes ...window.Config) *feed {
	return &feed{of: of, shapes: shapes}
}

// sample reads the source once. The views are made with the first sample, since
// only then it is known on which times they live.
func (f *feed) sample(t time.Time) {
	totals := f.of.Totals()
	for _, shape := range f.shapes[len(f.views):] {
		f.views = append(f.views, window.NewViewAt(shape, t))
	}
	for _, view := range f.views {
		view.SampleAt(t, totals)
	}
}

// brief is a span without the zeros at its end: 5m and not 5m0s.
func brief(span time.Duration) string {
	text := span.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
