package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

// observers read the metrics in every possible way.
type observers struct {
	faults   *faults
	registry *prometheus.Registry
	shown    map[string]float64 // counters at the last scrape
	reader   *metric.ManualReader
	page     *httptest.Server

	scrapes, collections, visits, events atomic.Int64
}

func newObservers(faults *faults, sources ...stat.Source) (*observers, error) {
	page, err := dashboard.New(dashboard.Config{}, sources...)
	if err != nil {
		return nil, err
	}
	o := &observers{
		faults: faults, registry: prometheus.NewPedanticRegistry(), shown: map[string]float64{},
		reader: metric.NewManualReader(), page: httptest.NewServer(page),
	}
	if err := o.registry.Register(prom.NewCollector(sources...)); err != nil {
		return nil, err
	}
	_, err = otelmetric.Register(metric.NewMeterProvider(metric.WithReader(o.reader)), sources...)
	return o, err
}

// scrape reads the metrics as Prometheus does, and checks that no counter has gone back.
func (o *observers) scrape() {
	families, err := o.registry.Gather()
	if err != nil {
		o.faults.add("scrape", "%v", err)
		return
	}
	o.scrapes.Add(1)
	shown := map[string]float64{} // not that of the last time: evicted keys do not come back
	for _, f := range families {
		if f.GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, m := range f.Metric {
			// the series of a key that was evicted and came back is another one
			key := fmt.Sprint(f.GetName(), labelText(m), m.GetCounter().GetCreatedTimestamp().AsTime())
			now := m.GetCounter().GetValue()
			if was := o.shown[key]; now < was {
				o.faults.add("counter", "%s went from %v back to %v", key, was, now)
			}
			shown[key] = now
		}
	}
	o.shown = shown
}

func labelText(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString("," + l.GetName() + "=" + l.GetValue())
	}
	return b.String()
}

func (o *observers) collect(ctx context.Context) {
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(ctx, &all); err != nil && ctx.Err() == nil {
		o.faults.add("collection", "%v", err)
		return
	}
	o.collections.Add(1)
}

// browse reads the event stream of the dashboard for a while.
func (o *observers) browse(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.page.URL+"/stream", http.NoBody)
	if err != nil {
		o.faults.add("page", "%v", err)
		return
	}
	response, err := o.page.Client().Do(request)
	if err != nil {
		if ctx.Err() == nil {
			o.faults.add("page", "%v", err)
		}
		return
	}
	defer response.Body.Close()
	o.visits.Add(1)
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err != io.EOF && ctx.Err() == nil {
				o.faults.add("page", "%v", err)
			}
			return
		}
		if strings.HasPrefix(line, "data:") {
			o.events.Add(1)
		}
	}
}
