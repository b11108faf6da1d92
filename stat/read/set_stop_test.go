package read_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

func TestAReadingMayBeStoppedAnywhere(t *testing.T) {
	for _, list := range [][]stat.Source{{newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2))}, breakers(2)} {
		all := len(observedNames(newSet(t, list...)))
		for last := range all {
			s := newSet(t, list...)
			for _, when := range []string{"all series are new", "all are known"} {
				rounds := 0
				for range s.Observe {
					if rounds == last {
						break
					}
					rounds++
				}
				require.Equal(t, last, rounds, when)
				require.Len(t, observedNames(s), all, "nothing is forgotten when %s", when)
			}
		}
	}
}

func TestASourceThatIgnoresTheStopIsNotRead(t *testing.T) {
	s := newSet(t, unstoppableSource{newFakeSource(slowCallsPoint("a", 1), slowCallsPoint("b", 2))}, newFakeSource(slowCallsPoint("c", 3)))
	require.Len(t, observedNames(s), 7, "with those of the set itself")
	for range s.Observe {
		break
	}
	_, own := readAll(t, s)
	require.Empty(t, own, "no panic is counted")
}

// unstoppableSource is a source that keeps yielding after yield has returned false.
type unstoppableSource struct{ source stat.Source }

func (d unstoppableSource) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range d.source.Observe {
		yield(s, v)
	}
}

func observedNames(s *read.Set[string]) (list []string) {
	for name := range s.Observe {
		list = append(list, name)
	}
	return list
}
