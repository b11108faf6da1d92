package prom_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
)

// The metrics of each family come as a registry sorts them, because to sort them again takes it
// little time then. Series that come and go change that order.
func TestMetricsComeInTheOrderOfARegistry(t *testing.T) {
	last, other := breaker.New("b", breaker.Config{}), breaker.New("aa", breaker.Config{})
	c := prom.NewCollector(breaker.New("c", breaker.Config{}), breaker.New("a", breaker.Config{}), last)
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(c))
	for _, change := range []func(){
		func() {}, func() {},
		func() { last.Force(breaker.ForcedOpen, "") },
		func() { c.Remove(last) },
		func() { require.NoError(t, c.Add(other)) },
		func() {
			c.Remove(other)
			require.NoError(t, c.Add(breaker.New("d", breaker.Config{})))
		},
	} {
		change()
		ch := make(chan prometheus.Metric, 1000)
		c.Collect(ch)
		close(ch)
		sent := map[string][][]*dto.LabelPair{}
		for m := range ch {
			var out dto.Metric
			require.NoError(t, m.Write(&out))
			sent[m.Desc().String()] = append(sent[m.Desc().String()], out.GetLabel())
		}
		families, err := r.Gather()
		require.NoError(t, err)
		require.Len(t, sent, len(families))
		for _, f := range families {
			for desc, labels := range sent {
				if !strings.Contains(desc, `"`+f.GetName()+`"`) {
					continue
				}
				require.Len(t, labels, len(f.GetMetric()))
				for i, m := range f.GetMetric() {
					require.Equal(t, m.GetLabel(), labels[i], "%s %d", f.GetName(), i)
				}
			}
		}
	}
}
