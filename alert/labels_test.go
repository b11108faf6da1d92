package alert_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// manyLabels returns n labels.
func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint("l", i)] = "x"
	}
	return labels
}

// alwaysFiring returns a rule that fires for each of the keys.
func alwaysFiring(keys map[string]int) alert.Rule {
	return alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(keys), func(int) alert.Value {
		return alert.Bool(func() bool { return true })
	})}
}

func TestAlertsOfTwoProcessesHaveDifferentIDs(t *testing.T) {
	alertOf := func(instance string, labels map[string]string) alert.Alert {
		m := alert.NewMonitor(alert.Config{Instance: instance}, alert.Rule{
			Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 }), Labels: labels,
		})
		m.Evaluate(time.Now())
		return m.Alerts()[0]
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s:%d", host, os.Getpid()), alertOf("", nil).Labels["instance"])
	require.Equal(t, "web-1", alertOf("web-1", nil).Labels["instance"])
	require.NotContains(t, alertOf("-", nil).Labels, "instance")
	own := map[string]string{"instance": "mine"}
	require.Equal(t, "mine", alertOf("web-1", own).Labels["instance"], "the rule's own label is kept")

	first := alertOf("web-1", nil).ID
	require.Equal(t, first, alertOf("web-1", nil).ID)
	require.NotEqual(t, first, alertOf("web-2", nil).ID)
	require.Equal(t, alertOf("web-1", own).ID, alertOf("web-2", own).ID)
	require.NotEqual(t, alertOf("web-1", nil).ID, alertOf("-", nil).ID)
}

func TestDistinctKeysHaveDistinctIDs(t *testing.T) {
	long := strings.Repeat("k", 1024)
	keys := []string{
		"", "a", "a\xff", "a\xfe", "a\xff\xff", "a\xfe\xff", "a?", "a\uFFFD", "a\uFFFD\uFFFD", "é", "\x80", "\xbf",
		long, long + "k", long + "l", long[:1023], long[:1023] + "é", long + "é", long[:1000] + "\xff", strings.Repeat("\x80", 5000),
	}
	members := map[string]int{}
	for i, key := range keys {
		members[key] = i
	}
	m := alert.NewMonitor(alert.Config{}, alwaysFiring(members))
	m.Evaluate(time.Now())
	for _, a := range m.Alerts() { // keys that look like the shortened texts of other keys
		members[a.Labels["key"]] = 1
		members[a.Key] = 1
	}
	m.Evaluate(time.Now())
	m.Evaluate(time.Now())
	ids, labels := map[string]bool{}, map[string]bool{}
	for _, a := range m.Alerts() {
		label := a.Labels["key"]
		ids[a.ID], labels[label] = true, true
		require.LessOrEqual(t, len(label), 1024)
		require.LessOrEqual(t, len(a.Key), 1024)
		require.True(t, utf8.ValidString(label), "%q", label)
		if a.Key == "a" || a.Key == "é" || a.Key == long {
			require.Equal(t, a.Key, label, "the label of an ordinary key is the key")
		}
	}
	require.Greater(t, len(members), len(keys))
	counts := []int{len(m.Alerts()), len(ids), len(labels)}
	require.Equal(t, []int{len(members), len(members), len(members)}, counts)
}

func TestMemberWithAShortenedKeyKeepsItsAlert(t *testing.T) {
	var told alertRecorder
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("x")}, Logger: discardLogger()},
		alwaysFiring(map[string]int{"a\xff": 1, "a\xfe": 2, strings.Repeat("k", 5000): 3}))
	for range 10 {
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
	}
	require.Equal(t, []string{"x firing", "x firing", "x firing"}, told.lines())
}

func TestSummariesAreTruncated(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 100_000), strings.Repeat("é", 100_000), strings.Repeat("\x80", 100_000)} {
		r := alwaysFiring(map[string]int{"a": 1})
		r.Describe = func(alert.Alert) string { return text }
		m := alert.NewMonitor(alert.Config{}, r)
		m.Evaluate(time.Now())
		summary := m.Alerts()[0].Summary
		require.LessOrEqual(t, len(summary), 4096)
		require.True(t, strings.HasSuffix(summary, "…"))
		require.True(t, strings.HasPrefix(text, strings.TrimSuffix(summary, "…")))
	}
}

// The keys come from requests: each evaluation has new ones, and they are long. The receiver
// accepts firing alerts and refuses resolved ones.
func TestAlertsOfManyLongKeysTakeBoundedMemory(t *testing.T) {
	keys := map[string]int{}
	r := alwaysFiring(keys)
	f := newFlakyNotifier(func(a alert.Alert) error {
		if a.State == alert.Resolved {
			return errFlaky
		}
		return nil
	})
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{f}, Logger: discardLogger(), Budget: time.Minute, Timeout: time.Minute}, r)
	at, before := time.Now(), heapInUse()
	const rounds, members, long = 12, 1000, 5_000
	for round := range rounds {
		clear(keys)
		for i := range members {
			keys[fmt.Sprint(round, " ", i)+strings.Repeat("k", long)] = i
		}
		at = at.Add(5 * s)
		m.Evaluate(at)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_ = m.Flush(ctx)
		cancel()
		f.alertRecorder = alertRecorder{}
	}
	clear(keys)
	m.Evaluate(at.Add(5 * s))
	require.Less(t, heapInUse()-before, int64(40<<20), "of %d MB of keys", rounds*members*long>>20)
	require.Len(t, m.Alerts(), 1000, "the latest 1,000 absent members are remembered")
	runtime.KeepAlive(m)
}

// heapInUse returns the number of bytes in use.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
