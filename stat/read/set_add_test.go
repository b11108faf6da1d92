package read_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

func TestASourceGivenTwiceCountsOnce(t *testing.T) {
	b := newFakeSource(slowCallsPoint("a", 3))
	gate := newFakeSource(b.points[0], point{instrument.LimiterRequests.Series("a", "allowed"), 5})
	s := newSet(t, gate, b, b, gate)
	for range 3 { // as new series, and as known ones
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 3, "weir.limiter.requests{a,allowed}": 5}, got)
		require.Empty(t, own)
	}
	s.Remove(gate)
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 3}, got, "the other source still shows it")
}

func TestASetCopiesItsSources(t *testing.T) {
	list := []stat.Source{newFakeSource(slowCallsPoint("a", 1))}
	s := newSet(t, list...)
	list[0] = newFakeSource(slowCallsPoint("b", 2))
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1}, got)
}

func TestAddAndRemove(t *testing.T) {
	a, b := newFakeSource(slowCallsPoint("a", 1)), newFakeSource(slowCallsPoint("b", 2))
	s := newSet(t)
	for _, step := range []struct {
		do   string
		call func() error
		want metrics
	}{
		{"nothing", func() error { return nil }, metrics{}},
		{"add both", func() error { return s.Add(a, b) }, metrics{slowCallsA: 1, slowCallsB: 2}},
		{"add one again", func() error { return s.Add(a) }, metrics{slowCallsA: 1, slowCallsB: 2}},
		{"remove it and a stranger", func() error { s.Remove(a, newFakeSource(), nil); return nil }, metrics{slowCallsB: 2}},
		{"add another of its name", func() error { return s.Add(newFakeSource(slowCallsPoint("a", 3))) }, metrics{slowCallsA: 3, slowCallsB: 2}},
	} {
		require.NoError(t, step.call(), step.do)
		got, own := readAll(t, s)
		require.Equal(t, step.want, got, step.do)
		require.Empty(t, own, step.do)
	}
}

func TestANameIsFreeAsSoonAsItsSourceIsRemoved(t *testing.T) {
	a := newFakeSource(slowCallsPoint("a", 1))
	s := newSet(t, a)
	readAll(t, s)
	s.Remove(a)
	require.NoError(t, s.Add(newFakeSource(slowCallsPoint("a", 2))), "without a reading in between")
	got, own := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 2}, got)
	require.Empty(t, own)
}

func TestAddRefusesAllOrNothing(t *testing.T) {
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)))
	for want, bad := range map[string]stat.Source{
		`stat: two different series are weir.breaker.slow_calls{weir.breaker.name="a", weir.group.key=""}`: newFakeSource(slowCallsPoint("a", 9)),
		`stat: the instrument shop.queue.length is not one of those that the set was made with`: newFakeSource(
			point{queueLength.Series(), 1}),
		`stat: source 2 of 2 is nil`: nil,
	} {
		require.ErrorContains(t, s.Add(newFakeSource(slowCallsPoint("b", 2)), bad), want)
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 1}, got)
		require.Empty(t, own, "refused series do not count as skipped")
	}
}

func TestAddIgnoresFaultsOfEarlierSources(t *testing.T) {
	late := newFakeSource()
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)), late)
	late.setPoints(slowCallsPoint("a", 9))
	require.NoError(t, s.Add(newFakeSource(slowCallsPoint("b", 2))))
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1, slowCallsB: 2}, got)
}

func TestASourceAddedTwiceIsReadOnce(t *testing.T) {
	a := newFakeSource()
	s := newSet(t, a)
	require.NoError(t, s.Add(a))
	require.NoError(t, s.Add(a))
	before := a.reads
	readAll(t, s)
	require.Equal(t, before+1, a.reads)
}

func TestIncomparableSourcesCanBeAddedButNotFound(t *testing.T) {
	l := fixedSource{slowCallsPoint("a", 1)}
	s := newSet(t, l)
	require.NoError(t, s.Add(l))
	s.Remove(l)
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1}, got)
}
