package producer_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
)

// callingSource calls a function in each of its methods.
type callingSource struct {
	histogramSource
	in func(method string)
}

func (s *callingSource) Observe(func(*stat.Series, float64) bool) { s.in("Observe") }
func (s *callingSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	s.in("Histograms")
	s.histogramSource.Histograms(yield)
}

// Sources and the filter may call the producer, but collections of deltas wait for each other.
func TestCallbacksMayCallTheProducer(t *testing.T) {
	for _, delta := range []bool{false, true} {
		var p *producer.Producer
		active, nested, seen := "", false, map[string]int{}
		in := func(method string) {
			if method != active || nested {
				return
			}
			nested = true
			defer func() { nested = false }()
			seen[method]++
			more := &histogramSource{durationsOf("more", stat.Histogram{})}
			require.NoError(t, p.Add(more), method)
			if !delta {
				_, err := p.Produce(t.Context())
				require.NoError(t, err)
			}
			p.Remove(more)
		}
		c := producer.Config{Delta: delta, Attributes: func(attribute.KeyValue) bool { in("Attributes"); return true }}
		var err error
		p, err = producer.New(c)
		require.NoError(t, err)
		for _, active = range []string{"Observe", "Histograms", "Attributes"} {
			source := &callingSource{histogramSource{durationsOf(active, stat.Histogram{})}, in}
			require.NoError(t, p.Add(source), active)
			metrics, err := p.Produce(t.Context())
			require.NoError(t, err)
			require.Len(t, metrics, 1)
			require.Positive(t, seen[active], active)
			p.Remove(source)
		}
	}
}

func TestASlowSourceDelaysNoOtherCall(t *testing.T) {
	for _, delta := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, err := producer.New(producer.Config{Delta: delta})
			require.NoError(t, err)
			wait, produced := make(chan struct{}), make(chan int, 2)
			slow := false
			source := &callingSource{histogramSource{durationsOf("slow", stat.Histogram{})}, func(string) {
				if slow {
					<-wait
				}
			}}
			require.NoError(t, p.Add(source))
			slow = true
			go func() {
				metrics, _ := p.Produce(t.Context())
				produced <- len(metrics)
			}()
			synctest.Wait()
			require.NoError(t, p.Add(&histogramSource{durationsOf("quick", stat.Histogram{})}))
			p.Remove(source)
			if !delta {
				metrics, err := p.Produce(t.Context())
				require.NoError(t, err)
				require.Len(t, points(t, metrics[0].Metrics[0]), 1)
			}
			close(wait)
			require.Equal(t, 1, <-produced)
		})
	}
}
