package alert_test

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

// shardKey is a key with a String method.
type shardKey struct {
	Zone string
	N    int
}

// keysOf makes three evaluations of a rule that fires for each of the keys. It returns the label
// "key" of each alert, and how many of the evaluations counted as an error of the kind.
func keysOf[K comparable](t *testing.T, kind string, keys ...K) (labels []string, errors float64) {
	t.Helper()
	members := map[K]int{}
	for i, key := range keys {
		members[key] = i
	}
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(members), func(int) alert.Value {
			return alert.Bool(func() bool { return true })
		}),
	})
	for range 3 {
		m.Evaluate(time.Now())
	}
	for _, a := range m.Alerts() {
		require.Equal(t, a.Labels["key"], a.Key)
		labels = append(labels, a.Key)
	}
	return labels, metricsOf(m)[instrument.AlertEvaluations.Name+"|x||"+kind]
}

func TestKeysOfAnyComparableType(t *testing.T) {
	for _, c := range []struct {
		got, want []string
	}{
		{labelsOnly(keysOf(t, "panic", 7, 12)), []string{"12", "7"}},
		{labelsOnly(keysOf(t, "panic", shardKey{"eu", 1}, shardKey{"us", 2})), []string{"{eu 1}", "{us 2}"}},
		{labelsOnly(keysOf(t, "panic", [2]string{"GET", "a.example"})), []string{"[GET a.example]"}},
		{labelsOnly(keysOf[any](t, "panic", 1, "b", nil)), []string{"1", "<nil>", "b"}},
	} {
		require.Equal(t, c.want, c.got)
	}
}

func labelsOnly(labels []string, _ float64) []string { return labels }

func TestKeysWithEqualTextsAreOneMemberAndAnError(t *testing.T) {
	labels, errors := keysOf[any](t, "same_key_text", 1, "1", int64(1), 2)
	require.Equal(t, []string{"1", "2"}, labels)
	require.Equal(t, 3.0, errors)
}

// A watched member stays when a key with the same text is added.
func TestKnownKeyHasPrecedenceOverANewKeyWithItsText(t *testing.T) {
	for range 20 { // the order of a map is random
		members := map[any]float64{"1": 1}
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
			Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(members), func(is float64) alert.Value {
				return alert.Gauge(func() float64 { return is })
			}),
		})
		m.Evaluate(time.Now())
		members[1] = 2
		m.Evaluate(time.Now())
		require.Len(t, m.Alerts(), 1)
		require.Equal(t, 1.0, m.Alerts()[0].Value)
	}
}

// A NaN is not equal to itself, so it is a new key each time.
func TestNaNKeysTakeNoMemory(t *testing.T) {
	labels, errors := keysOf(t, "same_key_text", math.NaN(), math.NaN(), 1)
	require.Equal(t, []string{"1", "NaN"}, labels)
	require.Equal(t, 3.0, errors)
}

// longTextKey is a key whose text is too long for a label.
type longTextKey int

func (l longTextKey) String() string {
	return strings.Repeat("k", 100_000) + strings.Repeat("l", int(l))
}

// brokenKey is a key whose String method panics.
type brokenKey int

func (brokenKey) String() string { panic("no words") }

func TestKeyTextIsBounded(t *testing.T) {
	labels, _ := keysOf(t, "panic", longTextKey(1), longTextKey(2))
	require.Len(t, labels, 2, "the hashes differ")
	for _, label := range labels {
		require.Len(t, label, 1024)
	}
	labels, errors := keysOf(t, "panic", brokenKey(1))
	require.Len(t, labels, 1)
	require.Zero(t, errors, "fmt writes the panic instead of the text")
}
