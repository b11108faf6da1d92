package read_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// point is a series and its current value.
type point struct {
	series *stat.Series
	value  float64
}

// fakeSource is a source that shows its points, and then panics if broken is set.
type fakeSource struct {
	mu     sync.Mutex
	points []point
	broken any
	reads  int
}

func (f *fakeSource) Observe(yield func(*stat.Series, float64) bool) {
	f.mu.Lock()
	points, broken := slices.Clone(f.points), f.broken
	f.reads++
	f.mu.Unlock()
	for _, p := range points {
		if !yield(p.series, p.value) {
			return
		}
	}
	if broken != nil {
		panic(broken)
	}
}

func (f *fakeSource) setPoints(points ...point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points = points
}

func newFakeSource(points ...point) *fakeSource { return &fakeSource{points: points} }

// fixedSource is a source that allocates nothing and cannot be compared.
type fixedSource []point

func (s fixedSource) Observe(yield func(*stat.Series, float64) bool) {
	for _, p := range s {
		if !yield(p.series, p.value) {
			return
		}
	}
}

// slowCallsPoint returns a point of a breaker with the given name.
func slowCallsPoint(name string, value float64) point {
	return point{instrument.BreakerSlowCalls.Series(name, ""), value}
}

// seriesText returns the text of a series in these tests.
func seriesText(s *stat.Series) string {
	return s.Instrument.Name + "{" + strings.Join(s.Values, ",") + "}"
}

func newSet(t *testing.T, sources ...stat.Source) *read.Set[string] {
	t.Helper()
	s, err := read.New(seriesText, sources...)
	require.NoError(t, err)
	return s
}

// readAll reads the set once. It returns the values of the sources by name, and those of the set
// itself that are not 0.
func readAll(t *testing.T, s *read.Set[string]) (metrics, own map[string]float64) {
	t.Helper()
	metrics, own = map[string]float64{}, map[string]float64{}
	for name, value := range s.Observe {
		short, isOwn := strings.CutPrefix(name, "weir.exporter.")
		switch {
		case isOwn && value != 0:
			own[short] = value
		case isOwn:
		default:
			require.NotContains(t, metrics, name, "yielded twice")
			metrics[name] = value
		}
	}
	return metrics, own
}

// captureLog returns what is logged during the test.
func captureLog(t testing.TB) *strings.Builder {
	t.Helper()
	log, before := &strings.Builder{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}
